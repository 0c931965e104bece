"""The micro-batches of a streaming query, from its start until it is asked to end."""

import threading
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.sql import DataFrame

from spark_runner.protocol.errors import SparkRunnerError

_STOP_MILLISECONDS = 600_000  # the query is stopped as soon as its last micro-batch waits


class NoFurtherBatch(SparkRunnerError):
    """The query was asked to stop, and leaves this micro-batch to the next run."""


class MicroBatches:
    """Passes the micro-batches of one streaming query to `write_batch`, until it is asked to end."""

    def __init__(self, write_batch: Callable[[DataFrame, int], None]) -> None:
        self._write_batch = write_batch
        self._guard = threading.Lock()  # of the three below
        self._is_ending = self._is_writing = self._is_waiting = False
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
        """Write one batch; the failure is kept, since Spark passes on its text alone."""
        with self._guard:
            is_ending = self._is_ending
            self._is_writing = not is_ending
        if is_ending:
            self._wait_for_stop(frame)
        try:
            self._write_batch(frame, batch)
        except Exception as error:
            self.failure = error
            raise
        finally:
            with self._guard:
                self._is_writing = False
