"""The class of each connector in the driver, and the small ones: `inline` and `print`."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, StructType

from spark_runner.connectors.base import Sink, Source, Writer, Written, preview, text_cells
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.files import Files


class Inline:
    """Rows given as JSON."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The rows, each value read as the type that its column declares."""
        if schema is None:
            raise ConnectorError("a table of connector 'inline' needs declared columns")
        objects = [dict(zip(schema.fieldNames(), row, strict=True)) for row in json.loads(options["rows"])]
        text = session.createDataFrame([(json.dumps(objects),)], "rows STRING")
        parsed = sql.from_json("rows", ArrayType(schema), {"mode": "FAILFAST"})
        # Collected here, so that a value of the wrong type is an error of this table, not of a later query.
        return session.createDataFrame(text.select(sql.inline(parsed)).collect(), schema)


class Console:
    """Shows the first rows of a query as a table."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Do nothing: shown rows cannot be removed."""

    def write(
        self,
        frame: DataFrame,
        options: Mapping[str, Any],
        mode: str,  # noqa: ARG002 - of Sink
        writer: Writer,  # noqa: ARG002 - likewise
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


SOURCES: Mapping[str, Source] = {
    "parquet": Files("parquet"),
    "csv": Files("csv"),
    "json": Files("json"),
    "inline": Inline(),
}
SINKS: Mapping[str, Sink] = {
    "parquet": Files("parquet"),
    "csv": Files("csv"),
    "json": Files("json"),
    "print": Console(),
}
