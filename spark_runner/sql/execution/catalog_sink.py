"""Adds the micro-batches of a stream to a table of a Spark catalog.

Tables of Iceberg and Delta Lake keep the number of a micro-batch. Others have no place for it, so a
micro-batch that runs again adds its rows again.
"""

import threading
from collections.abc import Mapping
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.record import Record
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.lakes import LakeTable, Mark, lake_kind
from spark_runner.sql.execution.stream_query import Target
from spark_runner.sql.execution.stream_session import StreamSession
from spark_runner.sql.execution.stream_set import StreamSet
from spark_runner.sql.text.full_name import full_name_of
from spark_runner.sql.text.literals import quote_name

_BATCH = "__orchestrator_batch"  # a view in the session that Spark has for the query

_LOCKS: dict[str, threading.Lock] = {}
"""Of the writes of this driver, by the last part of the name of a table: the parts before it have synonyms.

Two writes of Spark into one folder share the place of their unfinished files, which the first to end removes.
"""


class CatalogSink:
    """Writes with the head of the statement, `INSERT INTO table [BY NAME]`: Spark casts as in a batch."""

    def __init__(self, head: str, target: str) -> None:
        self._statement = f"{head} TABLE {quote_name(_BATCH)}"
        self._target, self._repeats = target, False
        self._kind: str | None = None  # of lake; empty for others, None before the first write
        name = full_name_of(target)
        self._lock = _LOCKS.setdefault(name.key[-1] if name else target, threading.Lock())

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Leave the rows of earlier attempts; the first micro-batch may have some."""
        del session, options, writer
        self._repeats = True

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Add the rows of a batch, if it has any."""
        del options
        session = frame.sparkSession
        is_kept = frame.storageLevel.useMemory  # the set of this INSERT shares its rows, and releases them
        if not is_kept:
            frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)  # not every catalog counts what it writes
        try:
            if rows := frame.count():
                # When Spark drops a view, it releases rows that others keep for an equal plan.
                frame.where(sql.lit(_BATCH).isNotNull()).createOrReplaceTempView(_BATCH)
                with self._lock:
                    self._add_once(session, request.writer)
            self._repeats = False
            return Written(rows)
        finally:
            session.catalog.dropTempView(_BATCH)
            if not is_kept:
                frame.unpersist()

    def _add_once(self, session: SparkSession, writer: Writer) -> None:
        if self._kind is None:
            self._kind = lake_kind(session, self._target)
        if not self._kind:
            self._add(session)
            return
        table = LakeTable(session, self._target, self._kind)
        series, _, batch = writer.run_key.rpartition("-")
        mark = Mark(series, int(batch))
        if not (self._repeats and table.has(mark)):
            with table.marked(mark):
                self._add(session)

    def _add(self, session: SparkSession) -> None:
        session.sql(self._statement)


def start_insert(run: StreamSession, step: Mapping[str, Any]) -> None:
    """Start the streaming query of an INSERT INTO a table of a catalog; raises SqlError."""
    frame, target = _checked(run, step)

    def begun_at(record: Record) -> DataFrame:
        return catalogs.rows_of_insert(run, step) if run.begin_at(record) else frame

    try:
        again = run.rows_again(lambda script: catalogs.rows_of_insert(script, step))
        run.streams.start(begun_at, step, target, run.table_reads, again)
    except (ConnectorError, *SPARK_ERRORS) as error:
        raise run.write_error(error, target.table, step) from error
    run.await_at_once([target.table])


def add_insert(run: StreamSession, streams: StreamSet, step: Mapping[str, Any]) -> None:
    """Add such an INSERT to a statement set; raises SqlError."""
    frame, target = _checked(run, step)
    try:
        streams.add(frame, step, target)
    except SPARK_ERRORS as error:
        raise run.write_error(error, target.table, step) from error


def _checked(run: StreamSession, step: Mapping[str, Any]) -> tuple[DataFrame, Target]:
    """The rows of an INSERT that Spark has analysed, and its target."""
    frame = catalogs.check_insert(run, step)
    head, _ = catalogs.parts_of_insert(run.passage(step["statement"]))
    table = {"name": step["target"], "connector": "catalog", "location": ""}
    return frame, Target(table, {}, CatalogSink(run.sent.send(head), step["target"]), "append")
