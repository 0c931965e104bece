"""Adds the micro-batches of a stream to a table of a Spark catalog.

A catalog has no place for the key of a writer, so a micro-batch that runs again adds its rows again.
"""

import threading
from collections.abc import Mapping
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.record import Record
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.stream_query import Target
from spark_runner.sql.execution.stream_session import StreamSession
from spark_runner.sql.grammar.parser import parse
from spark_runner.sql.grammar.statements import CatalogStatement
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
        name = full_name_of(target)
        self._lock = _LOCKS.setdefault(name.key[-1] if name else target, threading.Lock())

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Leave the rows of earlier attempts."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Add the rows of a batch, if it has any."""
        del options, request
        session = frame.sparkSession
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)  # not every catalog counts what it writes
        try:
            if rows := kept.count():
                kept.createOrReplaceTempView(_BATCH)
                with self._lock:
                    self._add(session)
            return Written(rows)
        finally:
            session.catalog.dropTempView(_BATCH)
            kept.unpersist()

    def _add(self, session: SparkSession) -> None:
        session.sql(self._statement)


def start_insert(run: StreamSession, step: Mapping[str, Any]) -> None:
    """Start the streaming query of an INSERT INTO a table of a catalog; raises SqlError."""
    frame = catalogs.check_analysed(run, step)
    statement = run.passage(step["statement"])
    written = parse(statement)
    offset = written.body_offset if isinstance(written, CatalogStatement) else 0
    query = run.sent.send(statement.part(offset, len(statement.text)))
    table = {"name": step["target"], "connector": "catalog", "location": ""}

    def begun_at(record: Record) -> DataFrame:
        is_changed = run.begin_at(record)
        return run.session.sql(query) if is_changed or frame is None else frame

    sink = CatalogSink(run.sent.send(statement.part(0, offset)), step["target"])
    try:
        run.streams.start(begun_at, step, Target(table, {}, sink, "append"), run.table_reads)
    except (ConnectorError, *SPARK_ERRORS) as error:
        raise run.write_error(error, table, step) from error
    run.await_at_once([table])
