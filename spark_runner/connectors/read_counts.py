"""Rows and bytes that tasks read where Spark counts none, added up in the driver by its accumulators."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import SparkSession


class ReadCount:
    """The count of one table; a copy of it travels to the tasks.

    Spark adds what a task has counted once it has succeeded. A task that runs again because the rows of its
    first run are lost counts again, as Spark's own figures do.
    """

    def __init__(self, session: "SparkSession") -> None:
        context = session.sparkContext
        self._rows: Accumulator[int] = context.accumulator(0)
        self._bytes: Accumulator[int] = context.accumulator(0)
        _COUNTS.append(self)

    def add(self, rows: int, size: int) -> None:
        """Count rows and their bytes, in a task."""
        self._rows.add(rows)
        self._bytes.add(size)

    def so_far(self) -> tuple[int, int]:
        """Rows and bytes, in the driver."""
        return self._rows.value, self._bytes.value


_COUNTS: list[ReadCount] = []  # of this driver


def read_so_far() -> dict[str, int]:
    """Rows and bytes of all tables, in the driver, by the names of the measurements."""
    counts = [count.so_far() for count in _COUNTS]
    return {"input_rows": sum(rows for rows, _ in counts), "input_bytes": sum(size for _, size in counts)}
