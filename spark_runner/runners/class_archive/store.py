"""Class archives on the disk: complete or absent, checked before each use, and the key of the one that fits.

<cache dir>/class-archives/           mode 0700: write access here allows to run code in drivers
    <key>.jsa       the archive
    <key>.json      its size and checksum, written last; its mtime is the time of the last use
    lock            held by the one worker that makes an archive
    making/         run directories of the drivers that make one
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import threading
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.logs.files import folder_lock, write_json
from queues import is_ours
from spark_runner.runners.spark_settings import COLLECTOR

_FORMAT = 2  # of the archives: a change of the sample job changes the number
_OBJECTS = re.compile(r"-XX:([+-]UseCompressed\w+|ObjectAlignmentInBytes=\d+)")
# With one of these the user brings an archive, or a JVM that accepts none made without the option.
_INCOMPATIBLE = re.compile(
    r"-XX:(SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile|DumpLoadedClassList|Flags|VMOptionsFile)="
    r"|-XX:[+-](DumpSharedSpaces|UseSharedSpaces|AutoCreateSharedArchive)"
    r"|-XX:\+?AOT|-Xshare|-Xbootclasspath|-javaagent|-agent|-cp$|-classpath$|--class-path|@"
    r"|--(patch-module|upgrade-module-path|limit-modules|module-path)|-p$"
)
_CLASS_PATH = "spark.driver.extraClassPath"
# These add classes before Spark's jars, or replace them.
_OTHER_CLASSES = ("SPARK_PREPEND_CLASSES", "SPARK_TESTING", "SPARK_SQL_TESTING", "SPARK_CLASSPATH")


@dataclass(frozen=True, slots=True)
class Fit:
    """Everything that an archive depends on; `key` is its name."""

    java_home: str
    spark_home: str
    flags: tuple[str, ...]  # of the JVM; equal when the archive is made and when it is used
    key: str
    python: str = ""  # that of the driver, with which the archive is made; no part of the key


def fit_of(
    environment: Mapping[str, str], conf: Mapping[str, str], options: Sequence[str] | None, conf_dir: Path
) -> Fit | None:
    """The requirements for this driver's archive, from all options of its JVM; None if it can have none.

    The size and modification time of every source file count, so that another Java or Spark at the same path
    never gets the archive. The JVM checks again, and starts without an unfit one. Entries behind Spark's jars
    on the class path, such as Hadoop's settings, do not count: the JVM allows additions at the end.
    """
    if options is None or any(map(_INCOMPATIBLE.match, options)):
        return None
    if conf.get(_CLASS_PATH) or any(environment.get(name) for name in _OTHER_CLASSES):
        return None
    java, spark_home = find_java(environment), environment.get("SPARK_HOME", "")
    if java is None or not spark_home:
        return None
    java_home = java.parent.parent
    flags = tuple(option for option in options if COLLECTOR.match(option) or _OBJECTS.match(option))
    try:
        files = [
            _files(java_home / "lib"),
            _files(java_home / "lib" / "server"),
            _files(Path(spark_home, "jars")),
        ]
    except OSError:
        return None
    facts = [_FORMAT, str(java), spark_home, str(conf_dir), flags, files]
    digest = hashlib.sha256(json.dumps(facts).encode("utf-8", "replace")).hexdigest()
    return Fit(str(java_home), spark_home, flags, digest[:24], environment.get("PYSPARK_DRIVER_PYTHON", ""))


def find_java(environment: Mapping[str, str]) -> Path | None:
    """The Java that spark-class starts, with all links resolved; None without one."""
    home = environment.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else "java"
    found = shutil.which(program, path=environment.get("PATH"))
    return Path(found).resolve() if found else None


def _files(directory: Path) -> list[tuple[str, int, int]]:
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
    return sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in found)


MAX_ARCHIVES = 4  # of each Spark, about 180 MB each: two kinds of drivers, before and after an upgrade
_LEAST_BYTES = 1 << 20  # a smaller file cannot hold Spark's classes
_CHUNK_BYTES = 1 << 22


class ArchiveStore:
    """Archives by key. Thread-safe; any number of processes may use one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.making = directory / "making"
        self._checked: dict[str, tuple[int, ...]] = {}  # key -> the file whose checksum this process verified
        self._guard = threading.Lock()

    def find(self, key: str) -> Path | None:
        """The archive, if it exists unchanged; None otherwise."""
        path, note = self._archive(key), self._note(key)
        try:
            with self._guard:
                if not self._is_whole(key, path, note):
                    return None
            with contextlib.suppress(OSError):  # a read-only cache: nothing is removed there
                os.utime(note)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return path

    def publish(self, key: str, made: Path, spark_home: str = "") -> None:
        """Move a finished archive into the store; raises OSError, and ValueError if it is too small."""
        size = made.stat().st_size
        if size < _LEAST_BYTES:
            raise ValueError(f"the archive has only {size} bytes")
        made.chmod(0o444)  # the directory's mode limits the readers
        note = {"bytes": size, "crc32": _sum(made), "spark": spark_home}
        self._note(key).unlink(missing_ok=True)  # an old checksum must never be paired with a new archive
        made.replace(self._archive(key))
        write_json(self._note(key), note, mode=None)

    def remove(self, key: str) -> None:
        """Remove an archive; processes that have it open keep it. Raises OSError."""
        self._note(key).unlink(missing_ok=True)
        self._archive(key).unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove each Spark's least recently used archives, all of a Spark that is gone, and other files.

        The caller holds the lock.
        """
        notes = sorted(self.directory.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        by_spark = defaultdict[str, list[str]](list)
        for note in notes:
            spark_home = _spark_of(note)
            if not spark_home or Path(spark_home).is_dir():
                by_spark[spark_home].append(note.stem)
        kept = {key for keys in by_spark.values() for key in keys[:MAX_ARCHIVES]}
        for path in self.directory.iterdir():
            key, _, kind = path.name.partition(".")
            if kind and (key not in kept or kind not in {"jsa", "json"}):
                path.unlink(missing_ok=True)
        shutil.rmtree(self.making, ignore_errors=True)

    def locked(self) -> AbstractContextManager[bool]:
        """The lock for making an archive; False if another process holds it. Raises OSError."""
        return folder_lock(self.directory)

    def _is_whole(self, key: str, path: Path, note: Path) -> bool:
        found = path.lstat()
        if not (stat.S_ISREG(found.st_mode) and all(map(is_ours, (self.directory.stat(), found)))):
            return False
        identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if self._checked.get(key) != identity:
            noted = json.loads(note.read_bytes())
            # The JVM itself checks only the header: damage behind it would crash the driver, or worse.
            if (noted["bytes"], noted["crc32"]) != (found.st_size, _sum(path)):
                return False
            self._checked[key] = identity
        return note.exists()

    def _archive(self, key: str) -> Path:
        return self.directory / f"{key}.jsa"

    def _note(self, key: str) -> Path:
        return self.directory / f"{key}.json"


def _spark_of(note: Path) -> str:
    """The home of the Spark of an archive; empty for the note of an older version, or a damaged one."""
    try:
        return str(json.loads(note.read_bytes())["spark"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _sum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            value = zlib.crc32(chunk, value)
    return value
