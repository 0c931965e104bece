"""A query for log records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.logs.reading.entry import LogRecord
from orchestrator.logs.reading.grep import Grep

LEVELS = ("trace", "debug", "info", "success", "warning", "error", "critical")
_OTHER_NAMES = {"warn": "warning", "fatal": "critical"}  # the names of log4j


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Conditions that all must hold; an empty one excludes nothing.

    `terms` maps a field to its accepted values. `since` is ISO 8601 in UTC.
    """

    terms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    level: str = ""  # this and above
    since: str = ""
    grep: Grep | None = None

    @classmethod
    def of(
        cls,
        *,
        level: str = "",
        since: str = "",
        grep: Grep | None = None,
        **terms: str | Sequence[str] | None,
    ) -> "LogQuery":
        """Build a query by fields: `job_id` is `job.id`. Fields without a value are left out."""
        wanted = {
            name.replace("_", ".", 1): (value,) if isinstance(value, str) else tuple(value)
            for name, value in terms.items()
            if value
        }
        return cls(wanted, level, since, grep)

    @property
    def levels(self) -> tuple[str, ...]:
        """The accepted levels, as they are written in documents."""
        if not self.level:
            return ()
        wanted = LEVELS[LEVELS.index(self.level) :]
        return (*wanted, *(other for other, name in _OTHER_NAMES.items() if name in wanted))

    def matches(self, entry: LogRecord) -> bool:
        """Whether a record meets all conditions."""
        return (
            all(entry.text(name) in values for name, values in self.terms.items())
            and (not self.level or entry.text("log.level").lower() in self.levels)
            and (not self.since or entry.timestamp >= self.since)
            and self.matches_text(entry)
        )

    def matches_text(self, entry: LogRecord) -> bool:
        """Whether message or stack trace match `grep`, which Elasticsearch does not evaluate."""
        if self.grep is None:
            return True
        return any(self.grep.is_in(entry.text(name)) for name in ("message", "error.stack_trace"))
