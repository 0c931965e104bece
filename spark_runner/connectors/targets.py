"""A directory of files as one INSERT changes it: as a whole, by what was written beside it before.

Beside a directory `out`, in whatever file system of Spark:

    .orchestrator-<run key>-<attempt>-<sum>        what an INSERT has written so far
    .orchestrator-<run key>-<attempt>-<sum>.old    what INSERT OVERWRITE replaces, for the moment of the swap

Files that an INSERT INTO has added are called `part-<run key>-<attempt>-...`: so a further attempt of the run
finds what the ones before it have added. All these names are hidden from readers, or those of data.
"""

import os
import zlib
from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.connectors.errors import ConnectorError, TargetChanged

PREFIX = ".orchestrator-"
_OLD = ".old"


class Target:
    """One directory, for one writer; what Java raises comes as Py4JJavaError."""

    def __init__(self, session: SparkSession, location: str, writer: Writer) -> None:
        java: Any = session._jsparkSession  # noqa: SLF001 - PySpark has no public way to a file system
        jvm: Any = session._jvm  # noqa: SLF001 - likewise
        self._new_path: Any = jvm.org.apache.hadoop.fs.Path
        found = self._new_path(location)
        self._files: Any = found.getFileSystem(java.sessionState().newHadoopConf())
        path = self._files.makeQualified(found)
        self.is_local = path.toUri().getScheme() == "file"
        if self.is_local:  # a link stays one, and what it names is replaced
            path = self._files.makeQualified(self._new_path(os.path.realpath(path.toUri().getPath())))
        self._location, self._path, self._writer = location, path, writer
        self._sum = f"{zlib.crc32(path.toString().encode()):08x}"

    @property
    def staging(self) -> str:
        """Where the writer puts its files first."""
        return str(self._beside(f"{self._writer.name}-{self._sum}").toString())

    def first_file(self) -> str | None:
        """The path below the directory of some file with data; None where there is none."""
        return next((name for file, name in self._data_files(self._path) if file.getLen()), None)

    def staged_files(self) -> int:
        """How many files with data are staged, as this host sees it."""
        return sum(file.getLen() > 0 for file, _ in self._data_files(self._new_path(self.staging)))

    def check(self) -> None:
        """Raise ConnectorError where there is something else than a directory."""
        if self._files.exists(self._path) and not self._files.getFileStatus(self._path).isDirectory():
            raise ConnectorError(f"refused: '{self._location}' is a file; a target is a directory")

    def check_replaceable(self) -> None:
        """Raise ConnectorError where another directory cannot take its place."""
        if self.is_local and os.path.ismount(self._path.toUri().getPath()):
            raise ConnectorError(
                f"refused: INSERT OVERWRITE replaces a whole directory, and on '{self._location}' a file"
                " system is mounted; name one below it"
            )

    def add(self) -> None:
        """Add what is staged, all files or none."""
        if not self._files.exists(self._path):
            staged = self._new_path(self.staging)
            self._move_files(staged)
            self._rename(staged, self._path)
            return
        moved = list[Any]()
        try:
            self._move_files(self._path, moved)
        except BaseException:
            for path in moved:
                self._files.delete(path, False)
            raise
        self._files.create(self._new_path(self._path, "_SUCCESS"), True).close()

    def replace(self) -> None:
        """Put what is staged in the place of what is there; where that fails, what is there stays."""
        staged, old = self._new_path(self.staging), self._new_path(f"{self.staging}{_OLD}")
        if not self._files.exists(self._path):
            self._rename(staged, self._path)
            return
        self._files.setPermission(staged, self._files.getFileStatus(self._path).getPermission())
        self._rename(self._path, old)
        try:
            self._rename(staged, self._path)
        except BaseException:
            self._rename(old, self._path)
            raise
        self._files.delete(old, True)

    def discard(self) -> None:
        """Remove what is staged."""
        self._files.delete(self._new_path(self.staging), True)

    def recover(self) -> None:
        """Make good what dead drivers have left: a swap half done, and all of earlier attempts."""
        if self._writer.attempt > 1:
            self._undo()
        elif self._files.exists(self._path):
            return
        for path in self._found_beside(f"*-{self._sum}{_OLD}"):
            if self._files.exists(self._path):  # the swap was made
                self._files.delete(path, True)
            else:
                self._rename(path, self._path)

    def _undo(self) -> None:
        for path in self._found_beside(f"{self._writer.run_key}-*-{self._sum}"):
            self._files.delete(path, True)
        if not self._files.exists(self._path):
            return
        added = f"part-{self._writer.run_key}-"
        ours = [
            file for file, _ in self._data_files(self._path) if file.getPath().getName().startswith(added)
        ]
        for file in ours:
            self._files.delete(file.getPath(), False)
        if ours and self.first_file() is None:
            self._files.delete(self._path, True)  # there was nothing before them

    def _move_files(self, root: Any, moved: list[Any] | None = None) -> None:
        """Move the staged files below `root`, under names that say whose they are."""
        staged = self._new_path(self.staging)
        for file, name in list(self._data_files(staged)):
            folder, _, own = name.rpartition("/")
            to = self._new_path(root, folder) if folder else root
            self._files.mkdirs(to)
            target = self._new_path(to, f"part-{self._writer.name}-{own.removeprefix('part-')}")
            self._rename(file.getPath(), target)
            if moved is not None:
                moved.append(target)

    def _data_files(self, root: Any) -> Iterator[tuple[Any, str]]:
        """The status of each file that readers see, and its path below `root`.

        Of the folders below it these are partitions; others may be those of other tables.
        """
        if not self._files.exists(root):
            return
        found, start = self._files.listFiles(root, True), len(root.toUri().getPath().rstrip("/")) + 1
        while found.hasNext():
            file = found.next()
            name = file.getPath().toUri().getPath()[start:]
            *folders, own = name.split("/")
            if not _is_hidden(own) and all("=" in folder and not _is_hidden(folder) for folder in folders):
                yield file, name

    def _beside(self, name: str) -> Any:
        return self._new_path(self._path.getParent(), f"{PREFIX}{name}")

    def _found_beside(self, pattern: str) -> list[Any]:
        found = self._files.globStatus(self._beside(pattern))
        return [status.getPath() for status in found or ()]

    def _rename(self, source: Any, target: Any) -> None:
        # Hadoop moves a directory into another one that is there: somebody else has just made it.
        if self._files.exists(target) or not self._files.rename(source, target):
            raise TargetChanged(
                f"'{self._location}' was not changed: {source.toString()} could not become"
                f" {target.toString()}; does another job write there, or may this one not write beside it?"
            )


def _is_hidden(name: str) -> bool:
    """Whether Spark passes over it when it reads a directory."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)
