"""What a task of Spark does to copy its rows into a table of PostgreSQL."""

import itertools
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
            try:
                with Wire(self.login) as wire:
                    settings = f"SET LOCAL {TASK_SETTING} = '{task}'"
                    rows = self.copy(wire, settings, itertools.chain([first], batches))
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

    def copy(self, wire: Wire, settings: str, batches: Iterator[Any]) -> int:
        """Copy all lines by one statement; returns their number, or raises WireError."""
        rows = 0

        def chunks() -> Iterator[memoryview]:
            nonlocal rows
            for batch in batches:
                rows += batch.num_rows
                yield lines_of(batch)

        with wire.transaction(settings):
            wire.copy_in(self.statement, chunks())
        return rows


def lines_of(batch: Any) -> memoryview:
    """The bytes of the texts, which lie one behind another in a column of Arrow."""
    column = batch.column(0)
    _, places, data = column.buffers()
    width = 8 if "large" in str(column.type) else 4
    if data is None or not len(column):
        return memoryview(b"")

    def end(index: int) -> int:
        return int.from_bytes(memoryview(places)[index * width : (index + 1) * width], "little")

    return memoryview(data)[end(column.offset) : end(column.offset + len(column))]
