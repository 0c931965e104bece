"""Spark's own log: the layout in which it is written, one JSON object a line, and how it is read back.

A driver on this host writes the log to its own file. A process on a cluster writes it to stderr, which the
cluster keeps. The layout is a pattern, not log4j's JSON layout, which loads further jars that delay a short
job. `spark_runner.runners.spark_log` reads the result.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spark_runner.protocol.process import RUN_DIR_VARIABLE

_START = b'{"@timestamp":"'
_TASK = re.compile(r"task \d+\.\d+ in stage (\d+)\.\d+ \(TID (\d+)\)")


@dataclass(frozen=True, slots=True)
class SparkEvent:
    """One event; `stage` and `task` only for an event of a task. `is_cut`: the end of its line is missing."""

    time: datetime
    level: str  # as log4j names it
    logger: str
    thread: str
    message: str
    trace: str = ""
    stage: int | None = None
    task: int | None = None
    is_cut: bool = False


def spark_event(line: bytes) -> SparkEvent | None:
    """The event in a line; None for other lines and truncated events."""
    if not line.startswith(_START):
        return None
    try:
        return _event(json.loads(line.decode("utf-8", "replace")))
    except _UNREADABLE:
        return None


_UNREADABLE = (ValueError, KeyError, TypeError, OverflowError, RecursionError)


def _event(found: dict[str, Any]) -> SparkEvent:
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


def level_of_event(line: bytes) -> str:
    """The level of the event that a line begins with, without a look at the rest; empty for other lines."""
    found = _LEVEL.match(line)
    return found[1].decode() if found else ""


def pieces(line: bytes) -> Iterator[tuple[int, SparkEvent | bytes]]:
    """The events in a line and the text around them, each with its position in the line.

    Two writers of one stream may share a line, and a line may have been cut: no part of an event is text.
    JSON that a program prints is text, also with some of the same fields.
    """
    done = search = 0
    while (begin := line.find(_START, search)) >= 0:
        found = _read_event(line, begin)
        search = begin + 1
        if found is None:
            continue
        if begin > done:
            yield done, line[done:begin]
        yield begin, found[0]
        done = search = found[1]
    rest = line[done:]
    if done and not rest.strip():
        return
    begin = next((size for size in range(len(_START), _SHORTEST - 1, -1) if rest.endswith(_START[:size])), 0)
    if rest[: len(rest) - begin]:  # a stream may end in the first letters of an event
        yield done, rest[: len(rest) - begin]


_SHORTEST = 4  # letters of an event that are no text
_DECODER = json.JSONDecoder()
_TEXT = rb'"((?:[^"\\]|\\.)*)'  # a JSON string without its end
_CUT = re.compile(
    rb'\{"@timestamp":"([^"]{0,40})(?:","log\.level":"([A-Z]{0,9})(?:","log\.logger":' + _TEXT + rb'(?:"'
    rb',"process\.thread\.name":' + _TEXT + rb'(?:","message":' + _TEXT + rb")?)?)?)?"
)
_NAMES = (b'","log.level":"', b'","log.logger":"')  # the cut may be in one of them
_LEVEL = re.compile(rb'\{"@timestamp":"[^"]{1,40}","log\.level":"([A-Z]{1,9})","log\.logger":')
_NO_TIME = datetime.fromtimestamp(0).astimezone()


def _read_event(line: bytes, begin: int) -> tuple[SparkEvent, int] | None:
    """The event at a position of a line, and the position behind it; of one that is cut, what is left."""
    after = line.find(_START, begin + 1)  # no event holds these bytes: within one, JSON escapes the quotes
    part = line[begin : after if after > 0 else len(line)]
    text = part.decode("utf-8", "surrogateescape")
    try:
        document, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        left = _left_of(part.rstrip(b"\r\n"))
        return None if left is None else (left, begin + len(part))
    try:
        return _event(document), begin + len(text[:end].encode("utf-8", "surrogateescape"))
    except _UNREADABLE:
        return None


def _left_of(part: bytes) -> SparkEvent | None:
    found = _CUT.match(part)
    rest = b"" if found is None else part[found.end() :]
    if found is None or (found[3] is None and not any(name.startswith(rest) for name in _NAMES)):
        return None
    time, level, logger, thread, message = (_unquoted(each or b"") for each in found.groups())
    try:
        moment = datetime.fromisoformat(time).astimezone()
    except (ValueError, OverflowError):
        moment = _NO_TIME
    return SparkEvent(moment, level or "INFO", logger, thread, message, is_cut=True)


def _unquoted(part: bytes) -> str:
    text = part.decode("utf-8", "replace")
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:  # a cut within an escaped character
        return text


def task_in(words: str) -> tuple[int, int] | None:
    """The stage and the task in a text of Spark; None without them."""
    found = _TASK.search(words) if "(TID " in words else None
    return (int(found[1]), int(found[2])) if found else None


_PATTERN = (
    """{"@timestamp":"%d{yyyy-MM-dd'T'HH:mm:ss.SSS}{UTC}Z","log.level":"%p","""
    """"log.logger":"%enc{%c}{JSON}","process.thread.name":"%enc{%t}{JSON}","message":"%enc{%m}{JSON}\""""
    # Spark sets the task in the threads that run one.
    """%notEmpty{,"task":"%enc{%X{task_name}}{JSON}"}"""
    """%notEmpty{,"error.stack_trace":"%enc{%ex}{JSON}"}}%n"""
)


# Hadoop warns in every JVM that it has no native library: PySpark brings none, and users cannot change that.
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
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
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
