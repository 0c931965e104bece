"""Writes the rows of one INSERT, micro-batch by micro-batch, with an ordinary sink."""

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

from pyspark.sql import DataFrame

from spark_runner.connectors.base import Sink, Writer, WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError

REPLAY = 2  # an attempt for which sinks look for rows of earlier ones


class BatchWriter:
    """Writes batch after batch, and counts them.

    The key of a writer is that of the stream and the batch, so that a repeated batch replaces its rows. Only
    the first batch after a start can be a repeated one.
    """

    def __init__(
        self,
        sink: Sink,
        options: Mapping[str, Any],
        stream: str,
        first_mode: str,
        request: Callable[..., WriteRequest],
    ) -> None:
        self._sink, self._options, self._stream, self._request = sink, options, stream, request
        self._first_mode = first_mode  # of the first batch of the stream
        self.place_lock: threading.Lock | nullcontext[None] = nullcontext()  # of all that write there
        self.has_begun = threading.Event()  # whether one of them has written since the start of the driver
        self.others_have_begun: Callable[[], bool] = lambda: False  # likewise before; the lock is held
        self._has_written = False
        self.rows, self.last_rows, self.batches = 0, 0, 0
        self.preview: list[list[str | None]] = []

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write all rows of a batch, or none."""
        with self.place_lock:
            written = self._write(frame, batch)
            self.has_begun.set()
        self._has_written = True
        self.last_rows, self.rows = written.rows, self.rows + written.rows
        self.batches += 1
        self.preview = self.preview or written.preview

    def _write(self, frame: DataFrame, batch: int) -> Written:
        writer = Writer(f"{self._stream}-{batch}", REPLAY)
        if not self._has_written:
            self._sink.recover(frame.sparkSession, self._options, writer)
        is_first = not self.preview  # the rows of one micro-batch are shown
        request = self._request(self._mode(batch), writer, batch=batch, is_shown=is_first)
        written = self._sink.write(frame, self._options, request)
        if written.rejected is not None and not written.rejected.isEmpty():
            raise ConnectorError("the target has rejected rows; a stream has no quarantine yet")
        return written

    def _mode(self, batch: int) -> str:
        """The mode of the table holds for the first batch of all INSERTs that write there."""
        if batch or self._first_mode == "append" or self.has_begun.is_set() or self.others_have_begun():
            return "append"
        return self._first_mode
