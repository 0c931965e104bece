"""Folders in a file system of Hadoop, which a JVM reaches."""

import contextlib
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.java_classes import java_class
from spark_runner.sql.checkpoints.folders import Folders, LocalFolders, local_path
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, reason

_UNSUPPORTED = "UnsupportedFileSystemException"


class HadoopFolders:
    """The file systems that the configuration of Spark knows: hdfs:, s3a: ..."""

    def __init__(self, session: SparkSession) -> None:
        java: Any = session._jsparkSession  # noqa: SLF001 - PySpark has no public access to a file system
        self._conf: Any = java.sessionState().newHadoopConf()
        self._class = partial(java_class, session)
        self._path = self._class("org.apache.hadoop.fs.Path")

    def names(self, url: str) -> list[str] | None:
        """The entries of a folder."""
        with self._opened(url) as (files, path):
            if not files.exists(path) or not files.getFileStatus(path).isDirectory():
                return None
            return sorted(str(each.getPath().getName()) for each in files.listStatus(path))

    def is_link(self, url: str) -> bool:
        """Whether it is a symbolic link."""
        with self._opened(url) as (files, path):
            return bool(files.exists(path) and files.getFileLinkStatus(path).isSymlink())

    def read(self, url: str) -> str | None:
        """The text of a file."""
        with self._opened(url) as (files, path):
            if not files.exists(path):
                return None
            stream = files.open(path)
            try:
                return str(self._class("org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
            finally:
                stream.close()

    def modified(self, url: str) -> float | None:
        """When it changed last."""
        with self._opened(url) as (files, path):
            return files.getFileStatus(path).getModificationTime() / 1000 if files.exists(path) else None

    def make(self, url: str) -> None:
        """Make a folder."""
        with self._opened(url) as (files, path):
            if not files.mkdirs(path):
                raise ConnectorError(f"'{url}' cannot be made")

    def replace(self, url: str, text: str) -> None:
        """Write a draft beside the file, and rename it."""
        parent, _, name = url.rpartition("/")
        draft = f"{parent}/.{name}.{uuid.uuid4()}"
        with self._opened(url) as (files, path):
            try:
                contexts = self._class("org.apache.hadoop.fs.FileContext")
                context = contexts.getFileContext(path.toUri(), self._conf)
            except SPARK_ERRORS as error:
                if _UNSUPPORTED not in str(error):
                    raise
                # A store of objects without such a rename: an object appears as a whole, at its end.
                _write(files.create(path, True), text)
                return
            source = self._path(draft)
            _write(files.create(source, False), text)
            rename = self._class("org.apache.hadoop.fs.Options$Rename")
            arrays = self._class("java.lang.reflect.Array")
            options = arrays.newInstance(rename.OVERWRITE.getClass(), 1)
            options[0] = rename.OVERWRITE
            context.rename(source, path, options)

    def rename(self, url: str, new: str) -> None:
        """Rename a folder."""
        with self._opened(url) as (files, path):
            if not files.rename(path, self._path(new)):
                raise ConnectorError(f"'{url}' cannot be renamed to '{new}'")

    def delete(self, url: str) -> None:
        """Delete a folder."""
        with self._opened(url) as (files, path):
            files.delete(path, True)
            if files.exists(path):
                raise ConnectorError(f"'{url}' cannot be deleted")

    @contextlib.contextmanager
    def lock(self, url: str) -> Iterator[bool]:  # noqa: ARG002 - of Folders
        """A file system of a cluster has no locks; Spark ends the query whose batch another has counted."""
        yield True

    @contextlib.contextmanager
    def _opened(self, url: str) -> Iterator[tuple[Any, Any]]:
        try:
            path = self._path(url)
            yield path.getFileSystem(self._conf), path
        except SPARK_ERRORS as error:
            raise ConnectorError(f"'{url}': {reason(error)}") from error


def folders_of(session: SparkSession, url: str) -> Folders:
    """The file system of a URL."""
    return HadoopFolders(session) if local_path(url) is None else LocalFolders()


def _write(out: Any, text: str) -> None:
    try:
        out.write(text.encode())
    finally:
        out.close()
