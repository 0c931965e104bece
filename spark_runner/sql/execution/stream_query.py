"""One streaming query: an INSERT, or the INSERTs of a statement set, which share what they read."""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_runner.connectors.base import Sink
from spark_runner.sql.execution.batch_writer import BatchWriter
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.streaming import MicroBatches

RowsOfBatch = Callable[
    [DataFrame], contextlib.AbstractContextManager[Callable[[Mapping[str, Any]], DataFrame]]
]
"""Gives, for a micro-batch, a function from the step of an INSERT to the rows that it writes."""

CountReads = Callable[[DataFrame, int], None]
"""Counts the rows of tables that a micro-batch reads, before its INSERTs write."""


@dataclass(frozen=True)
class Target:
    """The table that a query writes, and how; `mode` is that of the first micro-batch of a stream."""

    table: Mapping[str, Any]
    options: Mapping[str, Any]
    sink: Sink
    mode: str


@dataclass
class StreamInsert:
    """One INSERT."""

    step: Mapping[str, Any]
    target: Target
    columns: list[str]
    writer: BatchWriter


class StreamQuery:
    """A query whose micro-batches are written to the targets of all its INSERTs, one after another."""

    def __init__(self, inserts: list[StreamInsert], rows: RowsOfBatch, count: CountReads) -> None:
        self.inserts, self._rows, self._count = inserts, rows, count
        self.current = inserts[0]  # the INSERT that is being written
        self.batches = MicroBatches(self._write)
        self.checkpoint = contextlib.ExitStack()  # holds its lock until the end
        self.query: StreamingQuery | None = None  # None before its start and after its end
        self.seconds = 0.0
        self.failure: Exception | None = None
        self._started = time.monotonic()

    def _write(self, frame: DataFrame, batch: int) -> None:
        self.current = self.inserts[0]
        self._count(frame, batch)
        with self._rows(frame) as rows:
            for insert in self.inserts:
                self.current = insert
                insert.writer.write(rows(insert.step), batch)

    def look(self) -> None:
        """Stop the query if it was asked to end and may; keep what has become of an ended one."""
        query, batches = self.query, self.batches
        if query is None:
            return
        if query.isActive:
            # In this order: after the last write, the trigger is active until Spark has counted the batch.
            if batches.has_ended and (batches.is_waiting or not query.status["isTriggerActive"]):
                query.stop()
                self._end(batches.failure)  # a batch may have failed between the two looks
            return
        try:
            query.awaitTermination()
        except SPARK_ERRORS as error:
            self._end(batches.failure or error)
        else:
            self._end(None)

    def stop(self) -> None:
        """Stop the query, also within a micro-batch, which the next run then repeats."""
        if self.query is not None:
            self.query.stop()
            self._end(None)

    def _end(self, failure: Exception | None) -> None:
        self.query, self.failure = None, failure
        self.seconds = round(time.monotonic() - self._started, 3)
        self.checkpoint.close()
