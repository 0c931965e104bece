"""Judges the micro-batches of streams: rows that do not fit go to a quarantine which outlives the run.

The rows of a batch have the key of its writer, so that a repeated batch replaces them.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Sink, Tolerance, Writer, WriteRequest, Written
from spark_runner.sql.execution.batch_rows import bounded
from spark_runner.sql.execution.counted_files import CountedFiles
from spark_runner.sql.execution.judgement import (
    DROPPED,
    FILE,
    QUARANTINED,
    VERDICT,
    counts,
    counts_by_file,
    fitting,
    quarantined,
)
from spark_runner.sql.execution.quarantine import FILES, Origin, Quarantine, folder_name, rejected_rows
from spark_runner.sql.execution.quarantine_sink import QuarantineSink
from spark_runner.sql.execution.rejects_table import RejectsTable
from spark_runner.sql.execution.stream_counts import NOTHING, Numbers, StreamCounts

_FOLDER = ".quarantine"  # beside the folders of the progress; their list leaves it out


class StreamQuarantine:
    """The rows that do not fit of all streams of one run. Safe to use from several threads.

    `queries` is the number of queries of the script: with several, files that they read count once.
    """

    def __init__(
        self,
        session: SparkSession,
        whole: Quarantine,
        checkpoints: str,
        table: RejectsTable | None,
        queries: int,
    ) -> None:
        self.session, self._whole, self._table, self._queries = session, whole, table, queries
        self._place = f"{checkpoints}/{_FOLDER}"
        self._totals = StreamCounts(session, f"{self._place}/.counts", whole.run_key)
        self._guard = threading.RLock()  # of the fields below, of the quarantine and its limits
        self._folders: dict[Origin, str] = {}  # of the counts of each
        self._locks: dict[Origin, threading.Lock] = {}  # of the counts of each table
        self._batches: dict[Origin, tuple[str, Numbers]] = {}  # the present batch of each INSERT
        self._files: dict[Origin, CountedFiles] = {}
        # Of each table the queries that read it, with the number of each place in their plans.
        self._readers: dict[Origin, dict[tuple[str, int], None]] = {}
        self._started = set[str]()

    def resume(self, source: Origin) -> None:
        """Go on with the counts of earlier attempts of this run."""
        with self._guard:
            if (total := self._totals.total(self._folder(source))) != NOTHING:
                self._set(source, total)

    def begin(self, reader: str, tables: Iterable[Origin]) -> None:
        """Go on with those of the tables that a query reads."""
        with self._guard:
            self._started.add(reader)
            for table in tables:
                self._locks.setdefault(table, threading.Lock())
                self._readers.setdefault(table, {})[reader, 0] = None
                self.resume(table)

    def end(self) -> None:
        """Forget which files were counted: the run has succeeded, and has no further attempt."""
        for files in self._files.values():
            files.forget()

    def recover(self, session: SparkSession, source: Origin, writer: Writer) -> None:
        """Remove what an earlier attempt has written for this batch."""
        with self._guard:
            if self._table is not None:
                self._table.recover(session, writer)
            else:
                QuarantineSink().recover(session, self._options(source), writer)

    def take(self, frame: DataFrame, source: Origin, writer: Writer, *, accepted: int = 0) -> None:
        """Count judged rows of an INSERT in a batch, and write those that are quarantined.

        `accepted` rows were counted before. Raises TooManyBadRows above a limit, after the write.
        """
        number = counts(frame)
        with self._guard:
            if number.get(QUARANTINED):
                self._write(quarantined(frame, self._whole.facts(source)), source, writer)
            at, before = self._batches.get(source, ("", NOTHING))
            its = before if at == writer.run_key else NOTHING
            rows = max(its["rows"], sum(number.values()) + accepted)
            its = {name: its[name] + value for name, value in _numbers(number).items()} | {"rows": rows}
            self._batches[source] = writer.run_key, its
            self._keep(source, writer, its)

    def reject(
        self, rows: DataFrame, written: StructType, source: Origin, writer: Writer, *, accepted: int
    ) -> None:
        """Take the rows of a batch that a target did not accept; all had the columns `written`."""
        self.take(rejected_rows(rows, written), source, writer, accepted=accepted)
        self._whole.refuse_rejected(self._batches[source][1]["quarantined"])

    def tolerance(self, source: Origin, writer: Writer) -> Tolerance:
        """How many rows of a batch the target of an INSERT may reject, after `take`."""
        at, its = self._batches.get(source, ("", NOTHING))
        is_counted = at == writer.run_key
        counted = its["rows"] - its["quarantined"] - its["dropped"] if is_counted else 0
        return self._whole.tolerance_of(source, counted)

    def take_read(self, frames: Sequence[DataFrame], table: Origin, reader: str, writer: Writer) -> None:
        """Count the judged rows of a table that a batch of a query reads, and write those to set aside.

        Rows of files count once, if several queries, or one at several places, read them. Other rows count
        where the first query reads them. Raises TooManyBadRows above a limit, after the write.
        """
        with self._locks[table]:
            if FILE in frames[0].columns and (self._queries > 1 or len(frames) > 1):
                numbers = self._take_files(frames, table, reader, writer)
            elif (reader, 0) == next(iter(self._readers[table])):
                numbers = self._counted(counts(frames[0]), frames[0], table, writer)
            else:
                return
            with self._guard:
                self._keep(table, writer, numbers)

    def _take_files(self, frames: Sequence[DataFrame], table: Origin, reader: str, writer: Writer) -> Numbers:
        if table not in self._files:
            self._files[table] = CountedFiles(self._totals, self._folder(table))
        files, total = self._files[table], NOTHING
        read, counted = list[set[str]](), set[str]()
        for frame in frames:
            found = counts_by_file(frame)
            new = files.new(found, writer.run_key) - counted
            read, counted = [*read, set(found)], counted | new
            rows = frame if len(new) == len(found) else frame.filter(sql.col(FILE).isin(sorted(new)))
            number = dict[str, int]()
            for file in new:
                for action, value in found[file].items():
                    number[action] = number.get(action, 0) + value
            its = self._counted(number, rows, table, writer)
            total = {name: total[name] + value for name, value in its.items()}
        for place, its_files in enumerate(read):  # places may have the same file in different batches
            with self._guard:
                self._readers[table][reader, place] = None
            files.keep((reader, place), writer.run_key, its_files, () if place else counted)
        if len(self._started) == self._queries:
            files.forget_read(self._readers[table].keys())
        return total

    def _counted(self, number: Mapping[str, int], rows: DataFrame, table: Origin, writer: Writer) -> Numbers:
        """The numbers of rows, after the write of those to set aside."""
        if number.get(QUARANTINED):
            with self._guard:
                self._write(bounded(quarantined(rows, self._whole.facts(table))), table, writer)
        return _numbers(number)

    def _keep(self, source: Origin, writer: Writer, numbers: Numbers) -> None:
        """Store the numbers of a batch, and apply the limits."""
        stream, _, batch = writer.run_key.rpartition("-")
        self._set(source, self._totals.keep(self._folder(source), stream, int(batch), numbers))
        self._whole.check(source)

    def _folder(self, source: Origin) -> str:
        """The folder of the counts of a source: CREATE OR REPLACE gives tables the same name.

        So do two INSERTs in one line. All attempts of a run meet them in the same order.
        """
        if source not in self._folders:
            name = folder_name(source.name)  # without a comma
            number = 1 + sum(each.name == source.name for each in self._folders)
            self._folders[source] = name if number == 1 else f"{name},{number}"
        return self._folders[source]

    def _set(self, source: Origin, total: Numbers) -> None:
        place = "" if not total["quarantined"] else str(self._options(source)["path"])
        if place and self._table is not None:
            place = str(self._table.step["location"])
        self._whole.found[source] = {"table": source.name, **total, "place": place}

    def _write(self, rows: DataFrame, source: Origin, writer: Writer) -> None:
        if self._table is not None:
            self._table.add(rows, writer)
        else:
            QuarantineSink().write(
                rows, self._options(source), WriteRequest("append", writer, is_shown=False)
            )

    def _options(self, source: Origin) -> dict[str, Any]:
        return {**FILES, "path": f"{self._place}/{folder_name(source.name)}"}


class JudgingSink:
    """Takes the rows of a micro-batch that do not fit, and passes on the others to the sink of its target."""

    def __init__(
        self,
        quarantine: StreamQuarantine,
        source: Origin,
        sink: Sink,
        finish: Callable[[DataFrame], DataFrame] = fitting,
    ) -> None:
        self._quarantine, self._source, self._sink, self._finish = quarantine, source, sink, finish
        quarantine.resume(source)

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Remove what an earlier attempt has written for this batch."""
        self._quarantine.recover(session, self._source, writer)
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
        request = replace(request, may_reject=self._quarantine.tolerance(self._source, request.writer))
        written = self._sink.write(frame, options, request)
        if written.rejected is not None:
            rejected, source, writer = written.rejected, self._source, request.writer
            self._quarantine.reject(rejected, frame.schema, source, writer, accepted=written.rows)
        return Written(written.rows, written.preview)


def _numbers(number: Mapping[str, int]) -> Numbers:
    """The numbers from counts by action."""
    bad, dropped = number.get(QUARANTINED, 0), number.get(DROPPED, 0)
    return {"rows": sum(number.values()), "quarantined": bad, "dropped": dropped}
