"""Spark's own log: reads the events that `runners.log_layout` configures, and formats them for people."""

import json
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
            trace=str(found.get("error.stack_trace", "")),
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
