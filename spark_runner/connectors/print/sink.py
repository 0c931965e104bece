"""Rows on standard output."""

import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written, preview, text_cells


class PrintSink:
    """Shows the first rows of a query as a table."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Do nothing: shown rows cannot be removed."""

    def write(
        self,
        frame: DataFrame,
        options: Mapping[str, Any],
        request: WriteRequest,  # noqa: ARG002 - of Sink
    ) -> Written:
        """Show up to `limit` rows; only shown rows count as written."""
        limit = int(options["limit"])
        cells = text_cells(frame, limit + 1)
        shown = cells[:limit]
        lines = _table(frame.columns, shown)
        if len(cells) > limit:
            lines.append(f"only the first {limit} rows are shown")
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
        return Written(len(shown), preview(shown))

    def probe(self, session: SparkSession, options: Mapping[str, Any], schema: StructType) -> None:
        """Do nothing: standard output is always there."""


def _table(columns: list[str], rows: list[list[str | None]]) -> list[str]:
    printable = [columns, *[["NULL" if cell is None else _one_line(cell) for cell in row] for row in rows]]
    widths = [max(len(row[index]) for row in printable) for index in range(len(columns))]
    rendered = [
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in printable
    ]
    return [rendered[0], "-+-".join("-" * width for width in widths), *rendered[1:]]


def _one_line(cell: str) -> str:
    return cell.replace("\r", "\\r").replace("\n", "\\n")
