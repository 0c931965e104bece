"""The names of what lies beside a target: the staged and the replaced files of its writers."""

import contextlib
import time
import zlib
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types

from spark_runner.connectors.files.folders import all_files
from spark_runner.connectors.files.patterns import escaped

PREFIX = ".orchestrator-"
OLD = ".old"
_ABANDONED_SECONDS = 7 * 86_400  # since the last file; no task of Spark writes one file for so long


class Beside:
    """Those names in the folder `place`, for one target; the sum of its path is in each of them."""

    def __init__(self, files: Any, new_path: Any, place: Any, target: Any) -> None:
        self._files, self._new_path, self._place = files, new_path, place
        self._sum = f"{zlib.crc32(target.toString().encode()):08x}"

    @property
    def record(self) -> Any:
        """The path of the record of a commit."""
        return self._new_path(self._place, f"{PREFIX}{self._sum}.commit")

    def staging(self, writer: str) -> Any:
        """The path of the folder to which a writer writes first."""
        return self._new_path(self._place, f"{PREFIX}{writer}-{self._sum}")

    def staged(self, run_key: str) -> list[Any]:
        """The folders that the attempts of a run have staged."""
        return self._found(f"{escaped(run_key)}-*-{self._sum}")

    def replaced(self) -> list[Any]:
        """The folders that INSERT OVERWRITE of any run has replaced, or is replacing."""
        return self._found(f"*-{self._sum}{OLD}")

    def remove_abandoned(self) -> None:
        """Remove what runs without a further attempt have staged, as far as that is possible now."""
        before = (time.time() - _ABANDONED_SECONDS) * 1000
        for folder in self._found(f"*-{self._sum}"):
            is_in_swap = self._files.exists(self._new_path(f"{folder.toString()}{OLD}"))
            with contextlib.suppress(Py4JJavaError):  # its writer lives, and removes it or its files
                if not is_in_swap and self._is_older(folder, before):
                    self._files.delete(folder, True)

    def _is_older(self, folder: Any, before: float) -> bool:
        """Whether each file below it was modified before a time."""
        times = (file.getModificationTime() for file, _ in all_files(self._files, folder))
        if (first := next(times, None)) is None:
            # Not otherwise: an object store has no time of a folder, and says now.
            first = self._files.getFileStatus(folder).getModificationTime()
        return first < before and all(each < before for each in times)

    def _found(self, names: str) -> list[Any]:
        found = self._files.globStatus(self._new_path(escaped(self._place.toString()), f"{PREFIX}{names}"))
        return [status.getPath() for status in found or ()]
