"""What is looked for among log records."""

import re
from dataclasses import dataclass

from orchestrator.logs.reading.entry import Entry

LEVELS = ("trace", "debug", "info", "success", "warning", "error", "critical")
_OTHER_NAMES = {"warn": "warning", "fatal": "critical"}  # as log4j says


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What is empty excludes nothing. `since`: ISO 8601 in UTC."""

    job_id: str = ""
    attempt: int | None = None
    level: str = ""  # this and above
    since: str = ""
    executor: str = ""
    streams: tuple[str, ...] = ()
    grep: re.Pattern[str] | None = None

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that fit, as documents have them."""
        if not self.level:
            return ()
        wanted = LEVELS[LEVELS.index(self.level) :]
        return (*wanted, *(other for other, name in _OTHER_NAMES.items() if name in wanted))

    def fits(self, entry: Entry) -> bool:
        """Whether a record is looked for."""
        document = entry.document
        return (
            (not self.job_id or document.get("job.id") == self.job_id)
            and (self.attempt is None or document.get("job.attempt") == self.attempt)
            and (not self.level or entry.text("log.level").lower() in self.levels)
            and (not self.since or entry.timestamp >= self.since)
            and (not self.executor or document.get("spark.executor_id") == self.executor)
            and (not self.streams or document.get("log.stream") in self.streams)
            and self.matches(entry)
        )

    def matches(self, entry: Entry) -> bool:
        """Whether its words fit: what no index is asked for."""
        if self.grep is None:
            return True
        return bool(
            self.grep.search(entry.text("message")) or self.grep.search(entry.text("error.stack_trace"))
        )
