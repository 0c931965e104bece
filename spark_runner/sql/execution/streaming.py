"""Writes the micro-batches of a streaming query with an ordinary sink."""

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.sql import DataFrame

from spark_runner.connectors.base import Sink, Writer, WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError
from spark_runner.protocol.errors import SparkRunnerError

_REPLAY = 2  # an attempt for which sinks look for rows of earlier ones
_STOP_MILLISECONDS = 600_000  # the query is stopped as soon as its last micro-batch waits


class NoFurtherBatch(SparkRunnerError):
    """The query was asked to end, and leaves this micro-batch to the next run."""


class MicroBatches:
    """Writes the micro-batches of one streaming query, until it is asked to end.

    The key of a writer is that of the stream and the batch, so that a repeated batch replaces its rows. Only
    the first batch after a start can be a repeated one.
    """

    def __init__(
        self, sink: Sink, options: Mapping[str, Any], stream: str, first_mode: str, key: tuple[str, ...]
    ) -> None:
        self._sink, self._options, self._stream, self._key = sink, options, stream, key
        self._first_mode = first_mode  # of the first batch of the stream
        self.place_lock: threading.Lock | nullcontext[None] = nullcontext()  # of all that write there
        self.has_begun = threading.Event()  # whether one of them has written since the start of the driver
        self.others_have_begun: Callable[[], bool] = lambda: False  # likewise before; the lock is held
        self._has_written = False
        self._guard = threading.Lock()  # of the three below
        self._is_ending = self._is_writing = self._is_waiting = False
        self.rows, self.last_rows, self.batches = 0, 0, 0
        self.preview: list[list[str | None]] = []
        self.failure: Exception | None = None

    # ------------------------------------------------------------------ end
    def end(self) -> None:
        """Begin no further micro-batch; the current one goes on."""
        with self._guard:
            self._is_ending = True

    @property
    def has_ended(self) -> bool:
        """Whether no batch is being written, and none will be; Spark may not have counted the last one."""
        with self._guard:
            return self._is_ending and not self._is_writing

    @property
    def is_waiting(self) -> bool:
        """Whether a further micro-batch waits for the stop of the query: Spark has counted all before it."""
        with self._guard:
            return self._is_waiting

    def _wait_for_stop(self, frame: DataFrame) -> None:
        """Wait in the thread of the query, whose interruption by `stop` is no failure for Spark."""
        with self._guard:
            self._is_waiting = True
        jvm: Any = frame.sparkSession._jvm  # noqa: SLF001 - PySpark has no public access to the thread
        try:
            jvm.java.lang.Thread.sleep(_STOP_MILLISECONDS)
        except Py4JJavaError as error:
            # Spark looks for these words. It fails to do so in a longer text, as the original one.
            text = " ".join(str(error).splitlines()[:2])
            raise NoFurtherBatch(f"py4j.protocol.Py4JJavaError: {text}") from None
        raise NoFurtherBatch("the query was not stopped")

    # ------------------------------------------------------------------ write
    def write(self, frame: DataFrame, batch: int) -> None:
        """Write one batch, all rows or none; the failure is kept, since Spark passes on its text alone."""
        with self._guard:
            is_ending = self._is_ending
            self._is_writing = not is_ending
        if is_ending:
            self._wait_for_stop(frame)
        try:
            with self.place_lock:
                written = self._write(frame, batch)
                self.has_begun.set()
        except Exception as error:
            self.failure = error
            raise
        else:
            self._has_written = True
            self.last_rows, self.rows = written.rows, self.rows + written.rows
            self.batches += 1
            self.preview = self.preview or written.preview
        finally:
            with self._guard:
                self._is_writing = False

    def _write(self, frame: DataFrame, batch: int) -> Written:
        writer = Writer(f"{self._stream}-{batch}", _REPLAY)
        if not self._has_written:
            self._sink.recover(frame.sparkSession, self._options, writer)
        request = WriteRequest(self._mode(batch), writer, self._key)
        written = self._sink.write(frame, self._options, request)
        if written.rejected is not None and not written.rejected.isEmpty():
            raise ConnectorError("the target has rejected rows; a stream has no quarantine yet")
        return written

    def _mode(self, batch: int) -> str:
        """The mode of the table holds for the first batch of all queries that write there."""
        if batch or self._first_mode == "append" or self.has_begun.is_set() or self.others_have_begun():
            return "append"
        return self._first_mode
