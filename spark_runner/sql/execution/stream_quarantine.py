"""Judges the micro-batches of streams: rows that do not fit go to a quarantine which outlives the run.

The rows of a batch have the key of its writer, so that a repeated batch replaces them.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Sink, Writer, WriteRequest, Written
from spark_runner.connectors.files.sink import ParquetSink
from spark_runner.sql.execution.judgement import (
    DROPPED,
    QUARANTINED,
    VERDICT,
    counts,
    fitting,
    quarantined,
)
from spark_runner.sql.execution.quarantine import FILES, Origin, Quarantine, folder_name, rejected_rows
from spark_runner.sql.execution.rejects_table import RejectsTable
from spark_runner.sql.execution.stream_counts import NOTHING, Numbers, StreamCounts

_FOLDER = ".quarantine"  # beside the folders of the progress; their list leaves it out


class StreamQuarantine:
    """The rows that do not fit of all streams of one run. Safe to use from several threads."""

    def __init__(
        self, session: SparkSession, whole: Quarantine, checkpoints: str, table: RejectsTable | None
    ) -> None:
        self._whole, self._table = whole, table
        self._place = f"{checkpoints}/{_FOLDER}"
        self._totals = StreamCounts(session, f"{self._place}/.counts", whole.run_key)
        self._guard = threading.Lock()
        self._batches: dict[Origin, tuple[int, Numbers]] = {}  # the present batch of each, with its numbers

    def resume(self, source: Origin) -> None:
        """Go on with the counts of earlier attempts of this run."""
        with self._guard:
            if (total := self._totals.last(folder_name(source.name))) != NOTHING:
                self._set(source, total)

    def recover(self, session: SparkSession, source: Origin, writer: Writer) -> None:
        """Remove what an earlier attempt has written for this batch."""
        if self._table is not None:
            self._table.recover(session, writer)
        else:
            ParquetSink().recover(session, self._options(source), writer)

    def take(self, frame: DataFrame, source: Origin, writer: Writer, *, accepted: int = 0) -> None:
        """Count judged rows of a batch, and write those that are quarantined.

        `accepted` rows were counted before. Raises TooManyBadRows above a limit, after the write.
        """
        number = counts(frame)
        name, batch = folder_name(source.name), int(writer.run_key.rpartition("-")[2])
        with self._guard:
            if number.get(QUARANTINED):
                self._write(quarantined(frame, self._whole.facts(source)), source, writer)
            at, before = self._batches.get(source, (-1, NOTHING))
            its = before if at == batch else NOTHING
            its = {
                "rows": max(its["rows"], sum(number.values()) + accepted),
                "quarantined": its["quarantined"] + number.get(QUARANTINED, 0),
                "dropped": its["dropped"] + number.get(DROPPED, 0),
            }
            self._batches[source] = batch, its
            base = self._totals.before(name, batch)
            total = {key: base[key] + value for key, value in its.items()}
            self._totals.keep(name, batch, total)
            self._set(source, total)
            self._whole.check(source)

    def reject(
        self, rows: DataFrame, written: StructType, source: Origin, writer: Writer, *, accepted: int
    ) -> None:
        """Take the rows of a batch that a target did not accept; all had the columns `written`."""
        self.take(rejected_rows(rows, written), source, writer, accepted=accepted)
        self._whole.refuse_rejected(self._batches[source][1]["quarantined"])

    def _set(self, source: Origin, total: Numbers) -> None:
        place = "" if not total["quarantined"] else str(self._options(source)["path"])
        if place and self._table is not None:
            place = self._whole.found.get(source, {}).get("place", "")
        self._whole.found[source] = {"table": source.name, **total, "place": place}

    def _write(self, rows: DataFrame, source: Origin, writer: Writer) -> None:
        if self._table is not None:
            place = self._table.add(rows, writer)
            self._whole.found[source] = {**self._whole.found.get(source, {}), "place": place}
            return
        ParquetSink().write(rows, self._options(source), WriteRequest("append", writer))

    def _options(self, source: Origin) -> dict[str, Any]:
        return {**FILES, "path": f"{self._place}/{folder_name(source.name)}"}


class JudgingSink:
    """Takes the rows of a micro-batch that do not fit, and passes on the others.

    Without a `sink`, nothing is passed on: the query of a table alone counts its rows.
    """

    def __init__(
        self,
        quarantine: StreamQuarantine,
        source: Origin,
        sink: Sink | None = None,
        finish: Callable[[DataFrame], DataFrame] = fitting,
    ) -> None:
        self._quarantine, self._source, self._sink, self._finish = quarantine, source, sink, finish

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Remove what an earlier attempt has written for this batch."""
        self._quarantine.recover(session, self._source, writer)
        if self._sink is not None:
            self._sink.recover(session, options, writer)

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Write the quarantine first: above a limit the target stays as it is."""
        if VERDICT not in frame.columns:
            return self._passed_on(frame, options, request)
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        try:
            self._quarantine.take(kept, self._source, request.writer)
            return self._passed_on(self._finish(fitting(kept)), options, request)
        finally:
            kept.unpersist()

    def _passed_on(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        if self._sink is None:
            return Written(0)
        written = self._sink.write(frame, options, request)
        if written.rejected is not None:
            rejected, source, writer = written.rejected, self._source, request.writer
            self._quarantine.reject(rejected, frame.schema, source, writer, accepted=written.rows)
        return Written(written.rows, written.preview)
