"""Spark's own log: the layout in which it is written, one JSON object a line, and its lines for people.

A driver on this host writes the log to its own file. A process on a cluster writes it to stderr, which the
cluster keeps. The layout is a pattern, not log4j's JSON layout, which loads further jars that delay a short
job. `spark_runner.runners.spark_log` reads the result.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spark_runner.protocol.process import RUN_DIR_VARIABLE

_START = b'{"@timestamp":"'
_TASK = re.compile(r"task \d+\.\d+ in stage (\d+)\.\d+ \(TID (\d+)\)")


@dataclass(frozen=True, slots=True)
class SparkEvent:
    """One event; `stage` and `task` only for an event of a task."""

    time: datetime
    level: str  # as log4j names it
    logger: str
    thread: str
    message: str
    trace: str = ""
    stage: int | None = None
    task: int | None = None

    def text(self) -> str:
        """The text for people: a line in the time zone of this host, and the stack trace below it."""
        time = self.time.astimezone().isoformat(timespec="milliseconds")
        line = f"{time} {self.level} {self.logger.rpartition('.')[2]}: {self.message}\n"
        return f"{line}{self.trace.rstrip()}\n" if self.trace else line


def spark_event(line: bytes) -> SparkEvent | None:
    """The event in a line; None for other lines and truncated events."""
    if not line.startswith(_START):
        return None
    try:
        found: dict[str, Any] = json.loads(line.decode("utf-8", "replace"))
        thread = str(found["process.thread.name"])
        stage, task = task_in(str(found.get("task", ""))) or task_in(thread) or (None, None)
        return SparkEvent(
            time=datetime.fromisoformat(found["@timestamp"]).astimezone(),
            level=str(found["log.level"]),
            logger=str(found["log.logger"]),
            thread=thread,
            message=str(found["message"]),
            trace=str(found.get("error.stack_trace", "")).removeprefix(" "),  # which log4j before 2.25 adds
            stage=stage,
            task=task,
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def task_in(words: str) -> tuple[int, int] | None:
    """The stage and the task in a text of Spark; None without them."""
    found = _TASK.search(words) if "(TID " in words else None
    return (int(found[1]), int(found[2])) if found else None


def readable(line: bytes) -> bytes:
    """A line of Spark's log as text for people; a line without an event stays unchanged."""
    event = spark_event(line)
    return line if event is None else event.text().encode("utf-8", "replace")


def readable_lines(data: bytes) -> bytes:
    """The same for several lines, the last of which may be incomplete."""
    return b"".join(map(readable, data.splitlines(keepends=True)))


_PATTERN = (
    """{"@timestamp":"%d{yyyy-MM-dd'T'HH:mm:ss.SSSSSS}{UTC}Z","log.level":"%p","""
    """"log.logger":"%enc{%c}{JSON}","process.thread.name":"%enc{%t}{JSON}","message":"%enc{%m}{JSON}\""""
    # Spark sets the task in the threads that run one.
    """%notEmpty{,"task":"%enc{%X{task_name}}{JSON}"}"""
    """%notEmpty{,"error.stack_trace":"%enc{%ex}{JSON}"}}%n"""
)


def _properties(appender: str, settings: str) -> str:
    return f"""\
status = error
rootLogger.level = info
rootLogger.appenderRef.{appender}.ref = {appender}
appender.{appender}.name = {appender}
{settings}
appender.{appender}.layout.type = PatternLayout
appender.{appender}.layout.charset = UTF-8
appender.{appender}.layout.alwaysWriteExceptions = false
appender.{appender}.layout.pattern = {_PATTERN}
"""


# In the run directory, with any path and any working directory of the JVM. log4j opens the file for
# appending, so that `log_limit` may cut it.
LOG4J2_PROPERTIES = _properties(
    "file", f"appender.file.type = File\nappender.file.fileName = ${{env:{RUN_DIR_VARIABLE}}}/spark.log"
)
TO_STDERR = _properties("console", "appender.console.type = Console\nappender.console.target = SYSTEM_ERR")

DRIVER = "spark.driver.defaultJavaOptions"
EXECUTOR = "spark.executor.defaultJavaOptions"


def with_log_layout(conf: Mapping[str, str], location: str, *settings: str) -> dict[str, str]:
    """The `settings`, such as DRIVER or EXECUTOR, that make JVMs log by the file at `location`.

    The user's options follow: of two equal options a JVM takes the last.
    """
    option = f"-Dlog4j2.configurationFile={location}"
    return {name: f"{option} {conf.get(name, '')}".rstrip() for name in settings}
