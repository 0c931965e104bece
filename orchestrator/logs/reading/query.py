"""What is looked for among log records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.logs.reading.entry import LogRecord
from orchestrator.logs.reading.grep import Grep

LEVELS = ("trace", "debug", "info", "success", "warning", "error", "critical")
_OTHER_NAMES = {"warn": "warning", "fatal": "critical"}  # as log4j says


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What is empty excludes nothing. `since`: ISO 8601 in UTC. `terms`: fields, one value of each."""

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
        """A query by fields, `job_id` for `job.id`; those without a value are left out."""
        wanted = {
            name.replace("_", ".", 1): (value,) if isinstance(value, str) else tuple(value)
            for name, value in terms.items()
            if value
        }
        return cls(wanted, level, since, grep)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that fit, as documents have them."""
        if not self.level:
            return ()
        wanted = LEVELS[LEVELS.index(self.level) :]
        return (*wanted, *(other for other, name in _OTHER_NAMES.items() if name in wanted))

    def fits(self, entry: LogRecord) -> bool:
        """Whether a record is looked for."""
        return (
            all(entry.text(name) in values for name, values in self.terms.items())
            and (not self.level or entry.text("log.level").lower() in self.levels)
            and (not self.since or entry.timestamp >= self.since)
            and self.matches(entry)
        )

    def matches(self, entry: LogRecord) -> bool:
        """Whether its words fit: what no index is asked for."""
        if self.grep is None:
            return True
        return any(self.grep.is_in(entry.text(name)) for name in ("message", "error.stack_trace"))
