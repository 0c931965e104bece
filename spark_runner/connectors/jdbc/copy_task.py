"""What a task of Spark does to copy its rows into a table of PostgreSQL."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from spark_runner.connectors.jdbc.postgres import TASK_SETTING
from spark_runner.connectors.jdbc.wire import Login, Wire, WireError

RESULT = "task BIGINT, row_count BIGINT, state STRING, message STRING"


@dataclass(frozen=True)
class CopyTask:
    """Copies the lines of a partition: one row tells how many, or the error of the database."""

    login: Login
    statement: str

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Copy the lines of record batches with one column of texts."""
        import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415 - of executors; it publishes no types
        from pyspark import TaskContext  # noqa: PLC0415 - likewise

        context = TaskContext.get()
        task = context.taskAttemptId() if context else 0
        first = next(batches, None)
        rows, state, message = 0, None, None
        if first is not None:
            counted = _Counted(first, batches)
            try:
                with Wire(self.login) as wire:
                    wire.run(f"SET {TASK_SETTING} = '{task}'")
                    wire.copy_in(self.statement, counted.chunks())
                rows = counted.rows
            except WireError as error:
                state, message = error.state, str(error)
        yield pa.RecordBatch.from_pydict(
            {
                "task": pa.array([task], pa.int64()),
                "row_count": pa.array([rows], pa.int64()),
                "state": pa.array([state], pa.string()),
                "message": pa.array([message], pa.string()),
            }
        )


class _Counted:
    def __init__(self, first: Any, others: Iterator[Any]) -> None:
        self._first, self._others = first, others
        self.rows = 0

    def chunks(self) -> Iterator[memoryview]:
        """The bytes of the texts, which lie one behind another in a column of Arrow."""
        yield self._bytes(self._first)
        for batch in self._others:
            yield self._bytes(batch)

    def _bytes(self, batch: Any) -> memoryview:
        column = batch.column(0)
        self.rows += len(column)
        _, places, data = column.buffers()
        width = 8 if "large" in str(column.type) else 4
        if data is None or not len(column):
            return memoryview(b"")

        def end(index: int) -> int:
            return int.from_bytes(memoryview(places)[index * width : (index + 1) * width], "little")

        return memoryview(data)[end(column.offset) : end(column.offset + len(column))]
