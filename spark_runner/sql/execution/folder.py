"""The folder of the definition, to which relative paths refer; without the folder they are errors."""

import errno
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.sql import SparkSession

from spark_runner.connectors.java_classes import java_class
from spark_runner.protocol.process import RUN_DIR_VARIABLE

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def is_accessible(directory: str) -> bool:
    """Whether this host has the folder, and this process may enter it."""
    return bool(directory) and Path(directory).is_dir() and os.access(directory, os.X_OK)


def missing_message(directory: str) -> str:
    """The reason why a relative path has no meaning here."""
    return f"{_reason(directory)}: {directory}" if directory else _reason(directory)


def set_working_directory(spark: SparkSession, directory: str) -> None:
    """Resolve relative paths against `directory`, in the JVM of this driver and in this process."""
    if is_accessible(directory):
        os.chdir(directory)
        set_spark_directory(spark, directory)
        return
    refuse_relative_paths(spark, _reason(directory), directory)
    if Path(os.environ.get(RUN_DIR_VARIABLE) or "/").resolve() == Path.cwd():
        # No process can create anything there, not even code that opens files without Python. Elsewhere, on a
        # cluster, the working directory holds the `files` of the definition.
        os.chdir("/proc/self/task")
    words = missing_message(directory)
    sys.addaudithook(lambda event, arguments: _check(event, arguments, words))


def refuse_relative_paths(spark: SparkSession, words: str, directory: str = "") -> None:
    """Make relative paths errors with this message, for everything in the JVM of this Spark."""
    # Nothing can be created below a file, and the errors of Spark name the path.
    try:
        place = Path.cwd() if os.environ.get(RUN_DIR_VARIABLE) else Path(tempfile.mkdtemp())  # in a pod
        file = place / words
        file.touch(mode=0o600)
    except OSError:
        file = Path("/dev/null", words)
    set_spark_directory(spark, f"{file}{directory}")


def _reason(directory: str) -> str:
    if not directory:
        return "relative paths need a folder of the definition, and it names none"
    return f"relative paths mean the folder of the definition, which is not on {socket.gethostname()}"


def set_spark_directory(spark: SparkSession, folder: str) -> None:
    """Resolve relative paths against `folder`, for everything in the JVM of this Spark from now on.

    Where the default file system is another one, such as HDFS, they become errors.
    """
    if getattr(spark, "_jvm", None) is None:  # PySpark has no public access to it
        return  # not accessible
    systems, path = (java_class(spark, f"org.apache.hadoop.fs.{name}") for name in ("FileSystem", "Path"))
    conf: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - likewise
    # For new file systems, as of checkpoints.
    java_class(spark, "java.lang.System").setProperty("user.dir", folder)
    systems.getLocal(conf).setWorkingDirectory(path("file", None, folder))
    try:
        default = systems.get(conf)
    except Py4JJavaError:
        return  # no other file system works
    scheme = default.getUri().getScheme()
    if scheme != "file":
        words = f"relative paths mean a folder of this host, and the default file system is {scheme}"
        try:
            # Nothing can exist there.
            default.setWorkingDirectory(path("file", None, f"/dev/null/{words}"))
        except Py4JJavaError:  # it accepts only its own paths, like viewfs
            default.setWorkingDirectory(path(f"/.reserved/{words}"))  # nor below this one


def _check(event: str, arguments: tuple[Any, ...], words: str) -> None:
    """An audit hook that refuses relative paths: writes, and reads of files that do not exist."""
    if event == "open":
        path, mode, flags = arguments
        # Reads by `open` only: a name in `os.open` may be relative to another folder.
        is_wanted = flags & _WRITES or mode is not None
    elif event == "os.mkdir":
        path, _, below = arguments
        flags, is_wanted = _WRITES, below == -1
    else:
        return
    if not is_wanted or not isinstance(path, str | bytes | os.PathLike):
        return
    named = Path(os.fsdecode(path))
    if named.is_absolute() or (not flags & _WRITES and named.exists()):  # one of `files`
        return
    raise FileNotFoundError(errno.ENOENT, words, str(named))
