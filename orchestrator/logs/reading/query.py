"""Queries of log records, and a record as it is read back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

MAX_CHARACTERS = 1_000
_MAX_BYTES = 8 << 20  # of the compiled expression; RE2 refuses what needs more


class Grep:
    """A regular expression of RE2: Python's syntax without look-around and back-references.

    Python's `re` backtracks: some expressions take years, and a match cannot be interrupted.
    """

    def __init__(self, expression: str) -> None:
        """Compile it; raises ValueError for an invalid or too long expression."""
        if len(expression) > MAX_CHARACTERS:
            message = f"it has {len(expression):,} characters, the limit is {MAX_CHARACTERS:,}"
            raise ValueError(message)
        import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - it has no types, and few calls need it

        options = re2.Options()
        options.max_mem = _MAX_BYTES
        options.log_errors = False
        try:
            self._compiled = re2.compile(_plain(expression), options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
            raise ValueError(text) from error

    def is_in(self, text: str) -> bool:
        """Whether the expression matches anywhere in the text."""
        return self._compiled.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """The text with lone surrogates replaced: UTF-8 cannot encode them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
