"""The commit of an INSERT OVERWRITE where folders have no rename in one step, as in object stores.

The record of a commit lists the staged files that become visible, and the files that they replace. The commit
is the creation of the record: before it the old rows stay, from then on every job that finds it completes it.
New files appear before old ones go, so that all old or all new rows are there at each moment; until the end
readers that do not know the record may see rows of both. Any number of jobs may do each step.
"""

import contextlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types

from spark_runner.connectors.errors import TargetChanged

_REQUESTS = 16  # at a time: a store answers each in 10 to 100 ms


class Commit:
    """The commit at one target; `new_path` makes a path of Hadoop."""

    def __init__(self, files: Any, new_path: Any, target: Any, record: Any) -> None:
        self._files, self._new_path, self._target, self._record = files, new_path, target, record

    def begin(self, staging: Any, new: Sequence[str], old: Sequence[str]) -> None:
        """Create the record; raises TargetChanged if another job has done so, or has removed the staging."""
        draft = self._new_path(staging, "_commit")
        text = json.dumps({"staging": staging.toString(), "new": list(new), "old": list(old)})
        stream = self._files.create(draft, True)
        stream.write(text.encode())
        stream.close()
        if self._files.exists(self._record) or not self._moves(draft, self._record):
            raise TargetChanged(f"another job is replacing '{self._target.toString()}'")

    def is_open(self) -> bool:
        """Whether there is one to complete."""
        return bool(self._files.exists(self._record))

    def complete(self, own: Sequence[str] = ()) -> bool:
        """Do what is left of a commit; False if staged files are gone: then the old ones stay.

        `own` are the new files of the caller's commit: False without them, whoever has completed it.
        """
        if (found := self._read()) is None:
            return all(map(self._exists, own))
        staging, new, old = self._new_path(found["staging"]), found["new"], found["old"]
        for folder in {name.rpartition("/")[0] for name in new}:
            self._files.mkdirs(self._at(folder))
        with ThreadPoolExecutor(_REQUESTS) as threads:
            are_new = all(list(threads.map(lambda name: self._publish(staging, name), new)))
            # Another job may have completed it; or a further attempt has removed what this record names.
            is_lost = not are_new and self.is_open() and all(threads.map(self._exists, old))
            list(threads.map(lambda name: self._files.delete(self._at(name), False), new if is_lost else old))
        self._files.delete(staging, True)
        if self._read() == found:  # else that of the next commit
            self._files.delete(self._record, False)
        return not is_lost and (found["new"] == list(own) or all(map(self._exists, own)))

    def _read(self) -> dict[str, Any] | None:
        try:
            with contextlib.closing(self._files.open(self._record)) as stream:
                found: dict[str, Any] = json.loads(bytes(stream.readAllBytes()))
                return found
        except Py4JJavaError:
            if self.is_open():
                raise
            return None

    def _publish(self, staging: Any, name: str) -> bool:
        """Whether a new file is in the target now."""
        staged, target = self._new_path(staging, name), self._at(name)
        if not self._files.exists(target):
            return self._moves(staged, target) or bool(self._files.exists(target))
        self._files.delete(staged, False)  # left by a death between copy and removal
        return True

    def _moves(self, source: Any, target: Any) -> bool:
        try:
            return bool(self._files.rename(source, target))
        except Py4JJavaError:
            if self._files.exists(source):
                raise
            return False

    def _exists(self, name: str) -> bool:
        return bool(self._files.exists(self._at(name)))

    def _at(self, name: str) -> Any:
        return self._new_path(self._target, name) if name else self._target
