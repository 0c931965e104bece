"""Queries of log records, and a record as it is read back."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from orchestrator.logs.reading.origin import STREAMS, Origin, level_of, origin_of

MAX_CHARACTERS = 1_000
_MAX_BYTES = 8 << 20  # of the compiled expression; RE2 refuses what needs more


class Grep:
    """A regular expression of RE2: Python's syntax without look-around and back-references.

    Python's `re` backtracks: some expressions take years, and a match cannot be interrupted.
    """

    def __init__(self, expression: str) -> None:
        """Compile it; raises ValueError for an invalid or too long expression."""
        self.expression = expression
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

    @property
    def origin(self) -> Origin:
        """Who wrote the record."""
        return origin_of(self.document)

    @property
    def level(self) -> str:
        """The level, one of `LEVELS` or a name of log4j, in lower case."""
        return level_of(self.document)

    @property
    def message(self) -> str:
        """The text of the record: a line without its end, or the message of an event."""
        return self.text("message")

    @property
    def is_part(self) -> bool:
        """Whether the line continues in the next record of its stream, because it is too long for one."""
        return self.document.get("log.part") is True


def time_of(moment: datetime) -> str:
    """A time as in `LogQuery.since`; one without a zone is local. Raises ValueError, OverflowError."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


LEVELS = ("trace", "debug", "info", "success", "warning", "error", "critical")
_OTHER_NAMES = {"warn": "warning", "fatal": "critical"}  # the names of log4j


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Conditions that all must hold; an empty one excludes nothing.

    `terms` maps a field to its accepted values. `since` is ISO 8601 in UTC. `spark_level` is the lowest level
    of the records of Spark.
    """

    terms: Mapping[str, Sequence[str]] = field(default_factory=dict)
    level: str = ""  # this and above
    since: str = ""
    grep: Grep | None = None
    origins: tuple[Origin, ...] = ()
    spark_level: str = ""

    @classmethod
    def of(
        cls,
        *,
        level: str = "",
        since: str = "",
        grep: Grep | None = None,
        origins: Sequence[Origin] = (),
        spark_level: str = "",
        **terms: str | Sequence[str] | None,
    ) -> "LogQuery":
        """Build a query by fields: `job_id` is `job.id`. Fields without a value are left out."""
        wanted = {
            name.replace("_", ".", 1): (value,) if isinstance(value, str) else tuple(value)
            for name, value in terms.items()
            if value
        }
        return cls(wanted, level, since, grep, tuple(origins), spark_level)

    def matches(self, entry: LogRecord) -> bool:
        """Whether a record meets all conditions."""
        return all(entry.text(name) in values for name, values in self.terms.items()) and self.matches_rest(
            entry
        )

    def matches_rest(self, entry: LogRecord) -> bool:
        """Whether a record meets all conditions except `terms`."""
        return (
            (not self.level or entry.level in levels_from(self.level))
            and (not self.since or entry.timestamp >= self.since)
            and self.matches_here(entry)
        )

    def matches_here(self, entry: LogRecord) -> bool:
        """Whether a record meets the conditions that Elasticsearch does not evaluate, or only in part."""
        if self.origins and entry.origin not in self.origins:
            return False
        is_quiet = self.spark_level and entry.level not in levels_from(self.spark_level)
        if is_quiet and entry.origin is Origin.SPARK:
            return False
        if self.grep is None:
            return True
        return any(self.grep.is_in(entry.text(name)) for name in ("message", "error.stack_trace"))

    @property
    def needs_more(self) -> bool:
        """Whether `matches_here` may reject many of the records that Elasticsearch finds."""
        return self.grep is not None or bool(self.origins)


@cache
def levels_from(level: str) -> tuple[str, ...]:
    """This level and those above, as they are written in documents."""
    wanted = LEVELS[LEVELS.index(level) :]
    return (*wanted, *(other for other, name in _OTHER_NAMES.items() if name in wanted))


DRIVER, ALL = "driver", "all"
"""Values for an executor: the driver alone, and the driver with all executors."""


_EXECUTOR = re.compile(r"[A-Za-z0-9._-]{1,40}")


def query_of(
    *,
    streams: Collection[str] = (),
    level: str = "",
    spark: bool = False,
    since: str = "",
    grep: Grep | None = None,
    executor: str = DRIVER,
) -> LogQuery:
    """The query for a view of a job: all that its program prints, and warnings of Spark.

    With `spark`, a level, the stream `spark` or executors it has all that Spark logs, too. Raises ValueError
    for a stream, a level or an executor that cannot be.
    """
    if level not in {"", *LEVELS} or not set(streams) <= STREAMS.keys():
        message = f"expected a level among {', '.join(LEVELS)}, and streams among {', '.join(STREAMS)}"
        raise ValueError(message)
    if not _EXECUTOR.fullmatch(executor):
        message = f"{executor[:80]!r} names no executor: expected a number of Spark, {DRIVER!r} or {ALL!r}"
        raise ValueError(message)
    is_all = spark or level or "spark" in streams or executor != DRIVER
    origins = tuple(origin for name, origin in STREAMS.items() if name in streams)
    return LogQuery(
        level=level, since=since, grep=grep, origins=origins, spark_level="" if is_all else "warning"
    )
