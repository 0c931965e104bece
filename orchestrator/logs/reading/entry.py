"""A log record as it is read back from Elasticsearch or a spool."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

_STREAMS = {"stdout", "stderr"}  # their lines are shown without a prefix


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A document and its id, which is the same in Elasticsearch and in the spool."""

    id: str
    document: dict[str, Any]

    @property
    def order(self) -> tuple[str, int, str]:
        """The sort key: the time, then the producer's sequence number."""
        sequence = self.document.get("event.sequence")
        return (self.timestamp, sequence if isinstance(sequence, int) else 0, self.id)

    @property
    def timestamp(self) -> str:
        """The time of the record: ISO 8601 in UTC, so that strings compare as times do."""
        return self.text("@timestamp").removesuffix("Z")

    def text(self, field: str) -> str:
        """A field as text; empty if the document does not have it."""
        value = self.document.get(field)
        return "" if value is None else str(value)

    def line(self) -> str:
        """One line for people: time, level, job, logger and message, with the stack trace below it."""
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
