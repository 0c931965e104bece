"""Writes the rows of one INSERT, micro-batch by micro-batch, with an ordinary sink."""

import threading
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from pyspark.sql import DataFrame

from spark_runner.connectors.base import Sink, Writer, WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError

_REPLAY = 2  # an attempt for which sinks look for rows of earlier ones


class BatchWriter:
    """Writes batch after batch, and counts them.

    The key of a writer is that of the stream and the batch, so that a repeated batch replaces its rows. Only
    the first batch after a start can be a repeated one.
    """

    def __init__(
        self, sink: Sink, options: Mapping[str, Any], stream: str, first_mode: str, key: tuple[str, ...]
    ) -> None:
        self._sink, self._options, self._stream, self._key = sink, options, stream, key
        self._first_mode = first_mode  # of the first batch of the stream
        self.place_lock: threading.Lock | nullcontext[None] = nullcontext()  # of all that write there
        self._has_written = False
        self.rows, self.last_rows, self.batches = 0, 0, 0
        self.preview: list[list[str | None]] = []

    def write(self, frame: DataFrame, batch: int) -> None:
        """Write all rows of a batch, or none."""
        with self.place_lock:
            written = self._write(frame, batch)
        self._has_written = True
        self.last_rows, self.rows = written.rows, self.rows + written.rows
        self.batches += 1
        self.preview = self.preview or written.preview

    def _write(self, frame: DataFrame, batch: int) -> Written:
        writer = Writer(f"{self._stream}-{batch}", _REPLAY)
        if not self._has_written:
            self._sink.recover(frame.sparkSession, self._options, writer)
        mode = "append" if batch else self._first_mode
        written = self._sink.write(frame, self._options, WriteRequest(mode, writer, self._key))
        if written.rejected is not None and not written.rejected.isEmpty():
            raise ConnectorError("the target has rejected rows; a stream has no quarantine yet")
        return written
