"""A log record as it is read back."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

_STREAMS = {"stdout", "stderr"}  # their lines are shown as they were printed


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A document and its id, by which it is known wherever it is found."""

    id: str
    document: dict[str, Any]

    @property
    def order(self) -> tuple[str, int, str]:
        """By time; what one producer has written in one moment, in its order."""
        sequence = self.document.get("event.sequence")
        return (self.timestamp, sequence if isinstance(sequence, int) else 0, self.id)

    @property
    def timestamp(self) -> str:
        """When it was logged: ISO 8601 in UTC, so that texts compare as times do."""
        return self.text("@timestamp").removesuffix("Z")

    def text(self, field: str) -> str:
        """A field as text; empty where it is not there."""
        value = self.document.get(field)
        return "" if value is None else str(value)

    def line(self) -> str:
        """As a person reads it: time, level, where it comes from, message, and the trace below it."""
        if self.text("log.stream") in _STREAMS:
            return self.text("message")
        job = self.text("job.id")
        words = [_local(self.timestamp), f"{self.text('log.level').upper():<8}"]
        words += [f"[{job}]"] if job else []
        words.append(f"{self.text('log.logger') or self.text('event.dataset')}: {self.text('message')}")
        trace = self.text("error.stack_trace").rstrip()
        return " ".join(words) + (f"\n{trace}" if trace else "")


def _local(timestamp: str) -> str:
    try:
        return datetime.fromisoformat(f"{timestamp}+00:00").astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError):
        return timestamp
