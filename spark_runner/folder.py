"""The folder of the definition, which relative paths mean; where a driver has it not, they are errors."""

import errno
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.sql import SparkSession

from spark_runner.process import RUN_DIR_VARIABLE

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def is_here(directory: str) -> bool:
    """Whether this host has the folder, and this process may work there."""
    return bool(directory) and Path(directory).is_dir() and os.access(directory, os.X_OK)


def missing(directory: str) -> str:
    """Why a relative path means nothing here."""
    return f"{_reason(directory)}: {directory}" if directory else _reason(directory)


def settle(spark: SparkSession, directory: str) -> None:
    """Make relative paths mean `directory` for Spark in the JVM of this driver, and for Python here."""
    if is_here(directory):
        os.chdir(directory)
        work_in(spark, directory)
        return
    refuse(spark, _reason(directory), directory)
    if Path(os.environ.get(RUN_DIR_VARIABLE) or "/").resolve() == Path.cwd():
        # Nobody, nor what opens files without Python, can make anything there. In other places, of a cluster,
        # are the `files` of the definition.
        os.chdir("/proc/self/task")
    words = missing(directory)
    sys.addaudithook(lambda event, arguments: _check(event, arguments, words))


def refuse(spark: SparkSession, words: str, directory: str = "") -> None:
    """Make relative paths of Spark errors that say these words, for all that is done in its JVM."""
    # Nothing can be made below a file, by nobody, and the errors of Spark name it.
    try:
        place = Path.cwd() if os.environ.get(RUN_DIR_VARIABLE) else Path(tempfile.mkdtemp())  # in a pod
        file = place / words
        file.touch(mode=0o600)
    except OSError:
        file = Path("/dev/null", words)
    work_in(spark, f"{file}{directory}")


def _reason(directory: str) -> str:
    if not directory:
        return "relative paths need a folder of the definition, and it names none"
    return f"relative paths mean the folder of the definition, which is not on {socket.gethostname()}"


def work_in(spark: SparkSession, folder: str) -> None:
    """Make relative paths of Spark mean `folder`, for all that is done in its JVM from now on.

    Where they would mean a place in another file system, as HDFS, they become errors.
    """
    jvm: Any = getattr(spark, "_jvm", None)  # PySpark has no public way to it
    if jvm is None:
        return  # it is out of sight
    hadoop: Any = jvm.org.apache.hadoop.fs
    conf: Any = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - likewise
    jvm.java.lang.System.setProperty("user.dir", folder)  # new file systems begin there, as of checkpoints
    local = hadoop.FileSystem.getLocal(conf)
    local.setWorkingDirectory(hadoop.Path("file", None, folder))
    try:
        default = hadoop.FileSystem.get(conf)
    except Py4JJavaError:
        return  # there is no other one that works
    scheme = default.getUri().getScheme()
    if scheme != "file":
        words = f"relative paths mean a folder of this host, and the default file system is {scheme}"
        try:
            default.setWorkingDirectory(
                hadoop.Path("file", None, f"/dev/null/{words}")
            )  # nothing can be there
        except Py4JJavaError:  # it takes its own paths only, as viewfs
            default.setWorkingDirectory(hadoop.Path(f"/.reserved/{words}"))  # nor below this one


def _check(event: str, arguments: tuple[Any, ...], words: str) -> None:
    """Refuse that Python writes where nobody will look, and say what a file is that it does not find."""
    if event == "open":
        path, mode, flags = arguments
        # Only what `open` itself reads: a name for `os.open` may be below another folder.
        is_wanted = flags & _WRITES or mode is not None
    elif event == "os.mkdir":
        path, _, below = arguments
        flags, is_wanted = _WRITES, below == -1
    else:
        return
    if not is_wanted or not isinstance(path, str | bytes | os.PathLike):
        return
    named = Path(os.fsdecode(path))
    if named.is_absolute() or (not flags & _WRITES and named.exists()):  # as `files` of the definition
        return
    raise FileNotFoundError(errno.ENOENT, words, str(named))
