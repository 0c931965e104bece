"""Java, Spark, and what the system has to offer: /proc and time zones."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from orchestrator.config.installations import pool_installations
from orchestrator.config.settings import Settings
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.model.errors import SettingsError
from queues import QueueError, find_jars, find_java
from spark_runner.protocol.control_groups import usable_processors

_PROC = Path("/proc/self/stat")
_ZONE = "Europe/Berlin"  # any zone with rules of its own


def check_java(settings: Settings) -> Iterator[Finding]:
    """A Java that Spark can use; else a note with the programs that were found."""
    place = os.environ.get("JAVA_HOME") or "PATH"
    try:
        java = find_java()
    except QueueError as error:
        what, _, remedy = str(error).partition("; ")
        yield Finding.of(FindingKind.JAVA_MISSING, place, what, remedy)
        return
    python = ".".join(map(str, sys.version_info[:3]))
    slots = "1 slot" if settings.slots == 1 else f"{settings.slots:,} slots"
    what = (
        f"Java {java.major} at {java.path}; Python {python} at {sys.executable}; "
        f"{usable_processors():g} processors, {slots}"
    )
    yield Finding.of(FindingKind.THIS_HOST, os.uname().nodename, what, "")


def check_spark(settings: Settings) -> Iterator[Finding]:
    """The Spark of this installation, and those that the settings name for pools."""
    try:
        find_jars()
    except QueueError as error:
        remedy = "install pyspark into this Python, or set SPARK_HOME to a Spark with all its jars"
        yield Finding.of(
            FindingKind.SPARK_MISSING, os.environ.get("SPARK_HOME") or sys.prefix, str(error), remedy
        )
    try:
        pool_installations(settings.spark)
    except SettingsError as error:
        remedy = "correct `spark_home` in the settings; `orchestrator config show` shows its origin"
        yield Finding.of(FindingKind.SPARK_MISSING, "spark", str(error), remedy)


def check_system(_settings: Settings) -> Iterator[Finding]:
    """/proc, from which workers learn whether a driver lives, and the time zones of schedules."""
    if not _PROC.exists():
        what = (
            "/proc is not mounted: a worker cannot see whether its drivers live, nor how much memory is free"
        )
        yield Finding.of(
            FindingKind.NO_PROC, str(_PROC.parent.parent), what, "mount it: mount -t proc proc /proc"
        )
    try:
        ZoneInfo(_ZONE)
    except (ZoneInfoNotFoundError, OSError) as error:
        what = f"there is no time zone {_ZONE}: schedules and logs can use UTC alone ({error})"
        remedy = "pip install tzdata, or install the package tzdata of the system"
        yield Finding.of(FindingKind.NO_TIME_ZONES, os.environ.get("PYTHONTZPATH") or "tzdata", what, remedy)
