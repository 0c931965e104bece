"""Rows on standard output."""

import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written, preview, text_cells

_ROW_BITS = (1 << 33) - 1  # of Spark's monotonically_increasing_id: the number of a row in its partition


class PrintSink:
    """Shows the first rows of a query as a table."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Do nothing: shown rows cannot be removed."""

    def write(
        self,
        frame: DataFrame,
        options: Mapping[str, Any],
        request: WriteRequest,
    ) -> Written:
        """Show up to `limit` rows; only shown rows count as written, and of a micro-batch all rows."""
        limit = int(options["limit"])
        if request.batch is None:
            cells = text_cells(frame, limit + 1)
            rows, lines = min(len(cells), limit), list[str]()
        else:
            rows, cells = _counted(frame, limit + 1)
            lines = [f"micro-batch {request.batch}: {rows:,} row{'' if rows == 1 else 's'}"]
        shown = cells[:limit]
        if shown or request.batch is None:
            lines += _table(frame.columns, shown)
        if len(cells) > limit:
            lines.append(f"only the first {limit} rows are shown")
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        return Written(rows, preview(shown))

    def probe(self, session: SparkSession, options: Mapping[str, Any], schema: StructType) -> None:
        """Do nothing: standard output is always there."""


def _counted(frame: DataFrame, limit: int) -> tuple[int, list[list[str | None]]]:
    """The number of all rows, and the first ones as text, in one pass."""
    observation = Observation()
    counted = frame.observe(observation, sql.expr("count(1)").alias("rows"))
    first = counted.where(sql.expr(f"(monotonically_increasing_id() & {_ROW_BITS}) < {limit}"))
    # A limit of Spark would end the pass early; this one is of each partition.
    cells = text_cells(first, None)[:limit]
    return int(observation.get["rows"]), cells


def _table(columns: list[str], rows: list[list[str | None]]) -> list[str]:
    printable = [columns, *[["NULL" if cell is None else _one_line(cell) for cell in row] for row in rows]]
    widths = [max(len(row[index]) for row in printable) for index in range(len(columns))]
    rendered = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in printable
    ]
    return [rendered[0], "-+-".join("-" * width for width in widths), *rendered[1:]]


def _one_line(cell: str) -> str:
    """The cell without line breaks, and without characters that a terminal would obey."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in cell)
