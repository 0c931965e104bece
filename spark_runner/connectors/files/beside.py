"""The names of what lies beside a target: the staged and the replaced files of its writers."""

import zlib
from typing import Any

from spark_runner.connectors.files.patterns import escaped

PREFIX = ".orchestrator-"
OLD = ".old"


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

    def _found(self, names: str) -> list[Any]:
        found = self._files.globStatus(self._new_path(escaped(self._place.toString()), f"{PREFIX}{names}"))
        return [status.getPath() for status in found or ()]
