"""One streaming query: an INSERT, or the INSERTs of a statement set, which share what they read."""

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_runner.connectors.base import Sink
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.push.adjustment import Adjustment
from spark_runner.sql.execution.batch_writer import BatchWriter
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.stream_limits import ChangingLimit
from spark_runner.sql.execution.streaming import MicroBatches

RowsOfBatch = Callable[
    [DataFrame], contextlib.AbstractContextManager[Callable[[Mapping[str, Any]], DataFrame]]
]
"""Gives, for a micro-batch, a function from the step of an INSERT to the rows that it writes."""

StartQuery = Callable[[DataFrame, Callable[[DataFrame, int], None]], StreamingQuery]
"""Starts the query of a frame, whose micro-batches a function writes."""

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

    def __init__(
        self,
        inserts: list[StreamInsert],
        rows: RowsOfBatch,
        count: CountReads,
        start: StartQuery,
        limit: ChangingLimit | None,
    ) -> None:
        self.inserts, self._rows, self._count, self._start, self._limit = inserts, rows, count, start, limit
        self.current = inserts[0]  # the INSERT that is being written
        self.batches = MicroBatches(self._write)
        self.checkpoint = contextlib.ExitStack()  # holds its lock until the end
        self.query: StreamingQuery | None = None  # None before its start and after its end
        self.seconds = 0.0
        self.failure: Exception | None = None
        self._started = time.monotonic()
        self._is_ending = False
        self._last: int | None = None  # the number of the last micro-batch that was written
        self._next: tuple[int, DataFrame] | None = None  # the limit with which the query starts again

    def begin(self, frame: DataFrame) -> None:
        """Start the query."""
        self.query = self._start(frame, self.batches.write)

    def end(self) -> None:
        """Begin no further micro-batch, and end after the current one."""
        self._is_ending = True
        self.batches.end()

    def _write(self, frame: DataFrame, batch: int) -> None:
        if self._limit:
            self._limit.tuner.resumed()
        self.current = self.inserts[0]
        self._count(frame, batch)
        with self._rows(frame) as rows:
            for insert in self.inserts:
                self.current = insert
                insert.writer.write(rows(insert.step), batch)
        self._last = batch

    def look(self, adjustment: Adjustment) -> None:
        """Stop the query if it was asked to end and may; keep what has become of an ended one.

        Between two micro-batches, it goes on with another limit if the tuning or an operator wants it.
        """
        query, batches = self.query, self.batches
        if query is None:
            return
        if query.isActive:
            # In this order: after the last write, the trigger is active until Spark has counted the batch.
            if batches.has_ended and (batches.is_waiting or not query.status["isTriggerActive"]):
                query.stop()
                if batches.failure or self._is_ending or self._next is None:
                    self._end(batches.failure)  # a batch may have failed between the two looks
                elif (failed := query.exception()) is not None:  # likewise, so Spark may not have counted it
                    self._end(failed)
                else:
                    self._go_on(*self._next)
            elif self._next is None and not self._is_ending:
                self._prepare(adjustment)
            return
        try:
            query.awaitTermination()
        except SPARK_ERRORS as error:
            self._end(batches.failure or error)
        else:
            self._end(None)

    def _prepare(self, adjustment: Adjustment) -> None:
        """Read the rows with another limit, if it is wanted, and let the current micro-batch be the last."""
        if self._limit is None or self._last is None:  # a checkpoint without a micro-batch has no beginning
            return
        self._limit.tuner.steer(adjustment)
        if (limit := self._limit.tuner.wanted()) is None:
            return
        try:
            self._next = limit, self._limit.rows(limit)
            self._limit.keep(limit)
        except (SparkRunnerError, *SPARK_ERRORS) as error:
            self._next = None
            self._limit.tuner.failed(str(error))
        else:
            self.batches.end()

    def _go_on(self, limit: int, frame: DataFrame) -> None:
        """Start the query again: Spark has counted the last micro-batch, and none has begun since."""
        self._next, self.batches = None, MicroBatches(self._write)
        if self._limit and self._last is not None:
            self._limit.tuner.change(limit, self._last + 1)
        try:
            self.begin(frame)
        except SPARK_ERRORS as error:
            self._end(error)

    def stop(self) -> None:
        """Stop the query, also within a micro-batch, which the next run then repeats."""
        if self.query is not None:
            self.query.stop()
            self._end(None)

    def _end(self, failure: Exception | None) -> None:
        self.query, self.failure = None, failure
        self.seconds = round(time.monotonic() - self._started, 3)
        self.checkpoint.close()
