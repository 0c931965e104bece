"""What files of a format cannot hold: columns, and rows, which are counted while they are written."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.files.partitions import refuse_partitions, unnamed_rows
from spark_runner.connectors.files.texts import kept_lines, refuse_columns
from spark_runner.connectors.rows import column

_LOST_LINES = "are NULL or have line breaks, which lines of text cannot hold"
_LOST_VALUES = (
    "have no value, and Spark leaves such rows out of a CSV file with one column; give option 'null_value'"
)
_UNNAMED = (
    "have a text in partition_by that the name of a folder cannot hold: the empty text and"
    " '__HIVE_DEFAULT_PARTITION__' would be NULL, and folders that end with '._COPYING_' are hidden; give"
    " such rows NULL, or another text"
)


def refuse_unheld_columns(schema: StructType, file_format: str, options: Mapping[str, Any]) -> None:
    """Raise ConnectorError for columns that would not come back from files of this format."""
    refuse_partitions(schema, options["partition_by"])
    if file_format == "text":
        refuse_columns(schema, options["partition_by"])
    for field in _in_files(schema, options):
        if file_format == "csv" and isinstance(field.dataType, BinaryType):
            raise ConnectorError(
                f"refused: column '{field.name}' is BINARY, which csv files cannot hold; write its text, such"
                " as base64(...)"
            )


def row_counts(schema: StructType, file_format: str, options: Mapping[str, Any]) -> tuple[Column, ...]:
    """The numbers of all rows, of those that the files hold, and of those that no folder holds."""
    return (
        sql.expr("count(1)").alias("rows"),
        _kept(schema, file_format, options).alias("kept"),
        unnamed_rows(schema, options["partition_by"]).alias("unnamed"),
    )


def refuse_unheld_rows(counts: Mapping[str, int], file_format: str) -> int:
    """The number of written rows by these counts; raises ConnectorError if some of them are not held."""
    rows, kept, unnamed = int(counts["rows"]), int(counts["kept"]), int(counts["unnamed"])
    if kept < rows:
        reason = _LOST_LINES if file_format == "text" else _LOST_VALUES
        raise ConnectorError(f"refused: of {rows} rows {rows - kept} {reason}")
    if unnamed:
        raise ConnectorError(f"refused: of {rows} rows {unnamed} {_UNNAMED}")
    return rows


def _kept(schema: StructType, file_format: str, options: Mapping[str, Any]) -> Column:
    """The number of rows that the files will hold."""
    names = [field.name for field in _in_files(schema, options)]
    if file_format == "csv" and not options["null_value"] and len(names) == 1:
        return sql.count(column(names[0]))
    if file_format == "text":
        return kept_lines(names[0])
    return sql.expr("count(1)")


def _in_files(schema: StructType, options: Mapping[str, Any]) -> list[StructField]:
    partitions = {name.lower() for name in options["partition_by"]}
    return [field for field in schema.fields if field.name.lower() not in partitions]
