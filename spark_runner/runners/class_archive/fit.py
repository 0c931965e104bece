"""Finds the archive that fits a driver: one made with the same Java, class path and garbage collector."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_runner.runners.java_flags import COLLECTOR

_FORMAT = 2  # of the archives: a change of the sample job changes the number
_OBJECTS = re.compile(r"-XX:([+-]UseCompressed\w+|ObjectAlignmentInBytes=\d+)")
# With one of these the user has an archive of their own, or a JVM that accepts none made without the option.
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
    return Fit(str(java_home), spark_home, flags, digest[:24])


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
