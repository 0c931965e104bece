"""Counts the rows that do not fit, writes them to the quarantine of the run, and applies its limits.

The counts come from queries of their own, so that retried and speculative tasks count once.
"""

import hashlib
import sys
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Tolerance, Writer, WriteRequest
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.files.sink import ParquetSink
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.sql.execution.judgement import (
    DROPPED,
    GIVEN,
    QUARANTINED,
    RECORD,
    TYPES,
    VERDICT,
    counts,
    fitting,
    quarantined,
    types_of,
)

_MAX_FOLDER_NAME = 200  # file systems allow 255 bytes
_NO_PLACE = (
    "this run has no place for such rows; an operator can set `quarantine`, or a script names a table for"
    " them: SET job.quarantine = name"
)
FILES = {"mode": "append", "partition_by": [], "compression": "zstd"}


class TooManyBadRows(SparkRunnerError):
    """More rows do not fit than the script allows; another attempt may find other data."""

    def __init__(self, message: str, source: "Origin | None" = None) -> None:
        super().__init__(message)
        self.source = source


class Origin(NamedTuple):
    """Where rows come from: a name for people, and the place of the statement, as names may occur twice."""

    name: str
    line: int
    column: int

    @classmethod
    def of(cls, name: str, step: Mapping[str, Any]) -> "Origin":
        """The rows of a statement."""
        return cls(name, step["line"], step["column"])


class Quarantine:
    """The rows of one run that do not fit.

    `into` writes them to the table that the script names, and returns its location.
    """

    def __init__(
        self, plan: Mapping[str, Any], writer: Writer, into: Callable[[DataFrame], str] | None
    ) -> None:
        settings = plan.get("bad_rows") or {}
        self._rows, self._percent = settings.get("rows"), settings.get("percent")
        self.has_limit = self._rows is not None or self._percent is not None
        self._into = into
        self._kept: DataFrame | None = None
        self._place: str = plan.get("quarantine") or ""
        self._job: str = (plan.get("built_ins") or {}).get("run_id", "")
        self._writer = writer
        self._begun = set[str]()  # the folders with rows of this attempt
        self.found: dict[Origin, dict[str, Any]] = {}

    def take(self, frame: DataFrame, source: Origin, *, accepted: int = 0) -> None:
        """Count judged rows, and write those that are quarantined; `accepted` rows are not in the frame.

        Raises ConnectorError without a place for them, and TooManyBadRows above a limit, after the write.
        """
        number = counts(frame)
        bad = number.get(QUARANTINED, 0)
        before = self.found.get(source, {"rows": 0, "quarantined": 0, "dropped": 0, "place": ""})
        rows = max(before["rows"], sum(number.values()) + accepted)
        self.found[source] = {
            "table": source.name,
            "rows": rows,
            "quarantined": before["quarantined"] + bad,
            "dropped": before["dropped"] + number.get(DROPPED, 0),
            "place": self._write(frame, source) if bad else before["place"],
        }
        self.check(source)

    def split(self, frame: DataFrame, source: Origin) -> DataFrame:
        """The rows of an INSERT that fit; until `release` all are kept, for a query may change its rows."""
        self._kept = frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        self.take(self._kept, source)
        return fitting(self._kept)

    def counts(self, *, in_order: bool) -> list[dict[str, Any]]:
        """One dict per origin of rows; `in_order` of the script, for streams count at the same time."""
        origins = sorted(self.found, key=lambda each: (each.line, each.column)) if in_order else self.found
        return [self.found[each] for each in origins]

    def release(self) -> None:
        """Forget the rows that `split` has kept."""
        if self._kept is not None:
            self._kept.unpersist()
            self._kept = None

    def rejected(self, frame: DataFrame, written: StructType, source: Origin, *, accepted: int) -> None:
        """Take the rows that a target did not accept; all had the columns `written`."""
        self.take(rejected_rows(frame, written), source, accepted=accepted)
        self.refuse_rejected(self.found[source]["quarantined"])

    def refuse_rejected(self, number: int) -> None:
        """Raise TooManyBadRows for rows that a target did not accept, if the script has no limit."""
        if not self.has_limit and number:
            raise TooManyBadRows(f"the target has rejected {number:,} rows")

    def tolerance(self, source: Origin) -> Tolerance:
        """How many rows the target of an INSERT may reject, after `split`; none without a place for them."""
        if self.has_limit and self._into is None and not self._place:
            return Tolerance(why_none=f"a row does not fit, and {_NO_PLACE}")
        its = self.found.get(source)
        return self.tolerance_of(source, its["rows"] - its["quarantined"] - its["dropped"] if its else 0)

    def tolerance_of(self, source: Origin, counted: int) -> Tolerance:
        """Likewise, of a write whose place has others; `counted` of its rows are in the numbers so far."""
        if not self.has_limit:
            return Tolerance()
        bad = sum(each["quarantined"] for each in list(self.found.values()))  # streams add to it meanwhile
        most = sys.maxsize if self._rows is None else max(0, int(self._rows) - bad)
        its = self.found.get(source, {"rows": 0, "quarantined": 0})
        return Tolerance(most, self._percent, its["rows"] - counted, its["quarantined"])

    @property
    def run_key(self) -> str:
        """The key of the run."""
        return self._writer.run_key

    def facts(self, source: Origin) -> dict[str, str]:
        """What the quarantine keeps of the run beside each row."""
        facts = {"source": source.name, "job": self._job, "run": self._writer.run_key}
        return {**facts, "attempt": str(self._writer.attempt)}

    def _write(self, frame: DataFrame, source: Origin) -> str:
        rows = quarantined(frame, self.facts(source))
        if self._into is not None:
            return self._into(rows)
        if not self._place:
            raise ConnectorError(f"rows do not fit, and {_NO_PLACE}")
        folder = f"{self._place.rstrip('/')}/{folder_name(source.name)}"
        # Each attempt of the run replaces the rows of the earlier one.
        mode = "append" if folder in self._begun else "overwrite"
        ParquetSink().write(rows, {**FILES, "path": folder}, WriteRequest(mode, self._writer, is_shown=False))
        self._begun.add(folder)
        return folder

    def check(self, source: Origin) -> None:
        """Raise TooManyBadRows if the rows so far exceed a limit."""
        total = sum(each["quarantined"] for each in list(self.found.values()))  # streams add to it meanwhile
        its = self.found[source]
        place = f"; they are in {its['place']}" if its["place"] else ""
        if self._rows is not None and total > self._rows:
            message = f"{total:,} rows do not fit, and job.error.limit.rows is {self._rows:,}{place}"
            raise TooManyBadRows(message, source)
        if self._percent is not None and its["quarantined"] * 100 > self._percent * its["rows"]:
            raise TooManyBadRows(
                f"{its['quarantined']:,} of {its['rows']:,} rows do not fit, and job.error.limit.percent is"
                f" {self._percent:g}{place}",
                source,
            )


def rejected_rows(frame: DataFrame, written: StructType) -> DataFrame:
    """Rows that a target did not accept, as in `Written.rejected`, with their verdict."""
    verdict = sql.struct(
        sql.lit("target").alias("rule"), sql.col("reason"), sql.lit(QUARANTINED).alias("action")
    )
    if "row" not in frame.columns:
        return frame.select(sql.col("record").alias(RECORD), verdict.alias(VERDICT))
    types = sql.lit(types_of(written))
    return frame.select(sql.col("row").alias(GIVEN), types.alias(TYPES), verdict.alias(VERDICT))


def folder_name(source: str) -> str:
    """The name of the folder of a source, one for each: no dot at its begin, so that it is no `..`."""
    name = urllib.parse.quote(source, safe="")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) > _MAX_FOLDER_NAME:
        name = f"{name[:_MAX_FOLDER_NAME]}-{hashlib.sha256(source.encode()).hexdigest()[:16]}"
    return name
