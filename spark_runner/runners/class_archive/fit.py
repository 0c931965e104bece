"""Which archive fits a driver: one made with the same Java, class path and garbage collector."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_runner.runners.java_flags import COLLECTOR

_FORMAT = 2  # of what we make: with another sample job comes another number
_OBJECTS = re.compile(r"-XX:([+-]UseCompressed\w+|ObjectAlignmentInBytes=\d+)")
# Who gives one of these has plans of his own, or a JVM that takes no archive which was made without them.
_STRANGERS = re.compile(
    r"-XX:(SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile|DumpLoadedClassList|Flags|VMOptionsFile)="
    r"|-XX:[+-](DumpSharedSpaces|UseSharedSpaces|AutoCreateSharedArchive)"
    r"|-XX:\+?AOT|-Xshare|-Xbootclasspath|-javaagent|-agent|-cp$|-classpath$|--class-path|@"
    r"|--(patch-module|upgrade-module-path|limit-modules|module-path)|-p$"
)
_CLASS_PATH = "spark.driver.extraClassPath"
# They put something before Spark's jars, or other classes in their place.
_OTHER_CLASSES = ("SPARK_PREPEND_CLASSES", "SPARK_TESTING", "SPARK_SQL_TESTING", "SPARK_CLASSPATH")


@dataclass(frozen=True, slots=True)
class Fit:
    """All that an archive depends on; `key` is its name."""

    java_home: str
    spark_home: str
    flags: tuple[str, ...]  # of the JVM; the same when it is made and when it is used
    key: str


def fit_of(
    environment: Mapping[str, str], conf: Mapping[str, str], options: Sequence[str] | None, conf_dir: Path
) -> Fit | None:
    """What an archive for this driver must fit, `options` being all of its JVM; None for one that gets none.

    All files that it is made from count with size and time of change, so that another Java or another Spark
    in the same place never gets it. The JVM checks once more, and goes without. What stands behind Spark's
    jars on the class path, as Hadoop's settings do, is no part of it: the JVM allows for more at the end.
    """
    if options is None or any(map(_STRANGERS.match, options)):
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
    """The Java that spark-class starts, with all links followed; None without one."""
    home = environment.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else "java"
    found = shutil.which(program, path=environment.get("PATH"))
    return Path(found).resolve() if found else None


def _files(directory: Path) -> list[tuple[str, int, int]]:
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
    return sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in found)
