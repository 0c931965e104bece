"""A target directory that one INSERT changes as a whole, with files that it wrote beside it before.

Beside a directory `out`, in any file system of Spark:

    .orchestrator-<run key>-<attempt>-<sum>        the files that an INSERT has written so far
    .orchestrator-<run key>-<attempt>-<sum>.old    the files that INSERT OVERWRITE replaces, during the swap
    .orchestrator-<sum>.commit                     of an object store: what an INSERT OVERWRITE replaces

They are below `out` itself if it is the root of a file system, or the job may not write in the folder above.

A swap is one step where the file system can exchange two folders, as those of Linux; else two renames: if
both folders exist and `out` does not, it is incomplete. If only `.old` exists, the staged files are in place,
and it is removed.

The files of an INSERT INTO are named `part-<run key>-<attempt>-...`, so that a further attempt of the run
finds the files that earlier ones added. All other names are hidden from readers.
"""

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.sql import SparkSession

from orchestrator.logs.files import FileLock
from spark_runner.connectors.base import Writer
from spark_runner.connectors.errors import ConnectorError, TargetChanged
from spark_runner.connectors.files.beside import OLD, Beside
from spark_runner.connectors.files.commit import Commit
from spark_runner.connectors.files.folders import all_files, data_files, exchange, is_walled
from spark_runner.connectors.files.hadoop import file_system_at
from spark_runner.connectors.java_classes import java_class

_MARK = "_SUCCESS"
FOLDERS_RENAME = {"file", "hdfs", "viewfs", "abfs", "abfss"}
"""Schemes of file systems that rename a folder in one step; others copy one object after another."""


class TargetDirectory:
    """One directory, for one writer; errors of Java are raised as Py4JJavaError."""

    def __init__(self, session: SparkSession, location: str, writer: Writer) -> None:
        self._new_path: Any = java_class(session, "org.apache.hadoop.fs.Path")
        self._files, found = file_system_at(session, location)
        path = self._files.makeQualified(found)
        self.is_local = path.toUri().getScheme() == "file"
        if self.is_local:  # a link stays, and its target is replaced
            path = self._files.makeQualified(self._new_path(os.path.realpath(path.toUri().getPath())))
        self._location, self._path, self._writer = location, path, writer
        above = path.getParent()
        self._has_beside = above is not None and not (self.is_local and is_walled(path.toUri().getPath()))
        self._beside = Beside(self._files, self._new_path, above if self._has_beside else path, path)
        self._commit: Commit | None = None
        if path.toUri().getScheme() not in FOLDERS_RENAME:
            self._commit = Commit(self._files, self._new_path, path, self._beside.record)

    @property
    def staging(self) -> str:
        """The directory to which the writer writes first."""
        return str(self._beside.staging(self._writer.name).toString())

    def first_file(self) -> str | None:
        """The path below the directory of any file with data; None without one."""
        return next((name for file, name in data_files(self._files, self._path) if file.getLen()), None)

    def staged_files(self) -> int:
        """The number of staged files with data that this host sees."""
        return sum(file.getLen() > 0 for file, _ in data_files(self._files, self._new_path(self.staging)))

    def check(self) -> None:
        """Raise ConnectorError if the path is not a directory."""
        if self._files.exists(self._path) and not self._files.getFileStatus(self._path).isDirectory():
            raise ConnectorError(f"refused: '{self._location}' is a file; a target is a directory")

    def check_replaceable(self) -> None:
        """Raise ConnectorError if another directory cannot replace it."""
        if not self._has_beside:
            raise ConnectorError(
                f"refused: INSERT OVERWRITE replaces a whole directory, and on '{self._location}' a file"
                " system is mounted, or this job may not write in the folder above; name one below it"
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold a lock against other jobs of this host, after incomplete replacements are finished."""
        with contextlib.ExitStack() as stack:
            # A lock on the folder above leaves no file and ends with its process. Some systems have none.
            with contextlib.suppress(OSError):
                if self.is_local:
                    lock = FileLock(Path(self._path.toUri().getPath()).parent, is_folder=True)
                    stack.callback(lock.release)
                    lock.acquire(seconds=math.inf)
            self.finish()
            yield

    def add(self) -> None:
        """Add the staged files, all or none."""
        staged = self._new_path(self.staging)
        if not self._files.exists(staged):
            raise TargetChanged(f"'{self._location}' was not changed: this run has a further attempt")
        if not self._files.exists(self._path):
            if self._commit is None:
                self._move_files(staged)
                self._rename(staged, self._path)
                return
            self._files.mkdirs(self._path)
        moved, mark = list[Any](), self._new_path(self._path, _MARK)
        try:
            self._move_files(self._path, moved)
            if not self._files.exists(mark):
                self._files.create(mark, True).close()
            self._check_moved(moved)
        except BaseException:
            for path in moved:
                with contextlib.suppress(Py4JJavaError):
                    self._files.delete(path, False)
            raise

    def replace(self) -> None:
        """Replace the directory by the staged one; on failure the old one stays."""
        staged, old = self._new_path(self.staging), self._new_path(f"{self.staging}{OLD}")
        if self._commit is not None:
            new = [name for _, name in data_files(self._files, staged)]
            old_files = {name for _, name in all_files(self._files, self._path)}
            if _MARK not in old_files and self._files.exists(self._new_path(staged, _MARK)):
                new.append(_MARK)
            self._commit.begin(staged, new, sorted(old_files - {_MARK}))
            if not self._commit.complete(new):
                raise TargetChanged(f"'{self._location}' was not changed: this run has a further attempt")
            return
        if not self._files.exists(self._path):
            self._rename(staged, self._path)
            return
        self._files.setPermission(staged, self._files.getFileStatus(self._path).getPermission())
        if self.is_local and exchange(staged.toUri().getPath(), self._path.toUri().getPath()):
            with contextlib.suppress(TargetChanged, Py4JJavaError):
                self._rename(staged, old)  # so that any job may remove it
            return
        self._rename(self._path, old)
        try:
            self._rename(staged, self._path)
        except BaseException:
            self._rename(old, self._path)
            raise

    def discard(self) -> None:
        """Remove the staged and the replaced files; failures are ignored, as no reader sees them."""
        staged, old = self._new_path(self.staging), self._new_path(f"{self.staging}{OLD}")
        with contextlib.suppress(Py4JJavaError):
            is_needed = self._files.exists(old) and self._files.exists(staged)
            if not is_needed and not self.has_open_commit():
                self._files.delete(staged, True)
                self._files.delete(old, True)

    def is_in_swap(self) -> bool:
        """Whether the directory is missing because an INSERT OVERWRITE is replacing it, or died meanwhile."""
        return not self._files.exists(self._path) and any(
            self._files.exists(self._staged_of(old)) for old in self._beside.replaced()
        )

    def recover(self) -> None:
        """Repair what dead drivers left: finish their replacements, and remove output of earlier attempts.

        Of other runs, too, it removes what they have staged a week ago.
        """
        with self.locked():
            self._beside.remove_abandoned()
            if self._writer.attempt > 1:
                self._undo()

    def finish(self) -> None:
        """Complete or take back the INSERT OVERWRITE of a dead driver."""
        if self._commit:
            self._commit.complete()
            return
        for old in self._beside.replaced():
            if not self._files.exists(self._staged_of(old)):
                with contextlib.suppress(Py4JJavaError):
                    self._files.delete(old, True)
            elif not self._files.exists(self._path):
                self._rename(old, self._path)

    def has_open_commit(self) -> bool:
        """Whether a replacement in an object store is not complete."""
        return bool(self._commit and self._commit.is_open())

    def _undo(self) -> None:
        for path in self._beside.staged(self._writer.run_key):
            if not self._files.exists(self._new_path(f"{path.toString()}{OLD}")):
                self._files.delete(path, True)
        if not self._files.exists(self._path):
            return
        added = f"part-{self._writer.run_key}-"
        own = [
            file
            for file, _ in data_files(self._files, self._path)
            if file.getPath().getName().startswith(added)
        ]
        for file in own:
            self._files.delete(file.getPath(), False)
        marks = {_MARK, f".{_MARK}.crc"}
        if own and all(name in marks for _, name in all_files(self._files, self._path)):
            self._files.delete(self._path, True)  # there was nothing before them, also not of others

    def _move_files(self, root: Any, moved: list[Any] | None = None) -> None:
        """Move the staged files below `root`, under names with the writer."""
        staged = self._new_path(self.staging)
        for file, name in list(data_files(self._files, staged)):
            folder, _, own = name.rpartition("/")
            to = self._new_path(root, folder) if folder else root
            if folder:
                self._files.mkdirs(to)
            target = self._new_path(to, f"part-{self._writer.name}-{own.removeprefix('part-')}")
            if moved is not None:
                moved.append(target)  # before: an object store may fail between copy and removal
            self._rename(file.getPath(), target)

    def _check_moved(self, moved: list[Any]) -> None:
        """Raise TargetChanged if another job replaced the directory, as without a lock in HDFS."""
        if not all(self._files.exists(path) for path in moved):
            raise TargetChanged(f"'{self._location}' was replaced while files were added")

    def _staged_of(self, old: Any) -> Any:
        return self._new_path(old.toString().removesuffix(OLD))

    def _rename(self, source: Any, target: Any) -> None:
        # Hadoop moves a directory into an existing one, which another job has just created.
        if self._files.exists(target) or not self._files.rename(source, target):
            raise TargetChanged(
                f"'{self._location}' was not changed: {source.toString()} could not become"
                f" {target.toString()}; does another job write there, or may this one not write beside it?"
            )


def is_in_swap(session: SparkSession, location: str) -> bool:
    """Whether a missing directory is about to be replaced."""
    return TargetDirectory(session, location, Writer("")).is_in_swap()


def complete_commit(session: SparkSession, location: str) -> None:
    """Complete the INSERT OVERWRITE of a dead driver in an object store; readers would see old and new rows.

    Raises TargetChanged if that fails. A location that cannot be read is no error here: who reads it reports
    that.
    """
    if _is_of_objects(location):
        try:
            TargetDirectory(session, location, Writer("")).finish()
        except Py4JJavaError as error:
            with contextlib.suppress(Py4JJavaError):
                refuse_open_commit(session, location, error)


def refuse_open_commit(session: SparkSession, location: str, cause: Exception | None = None) -> None:
    """Raise TargetChanged if a location of an object store has an INSERT OVERWRITE that is not complete."""
    if _is_of_objects(location) and TargetDirectory(session, location, Writer("")).has_open_commit():
        raise TargetChanged(f"'{location}' has old and new rows: its replacement is not complete") from cause


def _is_of_objects(location: str) -> bool:
    scheme, _, rest = location.partition("://")
    return bool(rest) and scheme not in FOLDERS_RENAME
