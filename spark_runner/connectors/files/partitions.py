"""Columns of `partition_by`, whose values are names of folders: what these cannot hold or replace."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    BinaryType,
    CharType,
    DataType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VarcharType,
)

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.rows import column

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_OF_NULL = ("", "__HIVE_DEFAULT_PARTITION__")  # texts whose folder is that of NULL
_HIDDEN_END = "._COPYING_"  # readers of Spark leave out folders of such names
_TEXTS = (StringType, CharType, VarcharType)
_INEXACT: Mapping[type[DataType], str] = {
    TimestampType: "TIMESTAMP: the name of its folder would be another time in another zone; give a DATE, or"
    " a TIMESTAMP_NTZ",
    BinaryType: "BINARY, which the name of a folder cannot hold; give its text, such as hex(...)",
}


def refuse_partitions(schema: StructType, partition_by: Sequence[str]) -> None:
    """Raise ConnectorError for a column whose values would not come back from the names of folders."""
    for field in _partitions(schema, partition_by):
        if reason := _INEXACT.get(type(field.dataType)):
            raise ConnectorError(f"refused: column '{field.name}' of partition_by is {reason}")
        if field.name.startswith("."):
            raise ConnectorError(
                f"refused: column '{field.name}' of partition_by begins with a dot, so that readers would"
                " leave out its folders; give it another name"
            )


def unnamed_rows(schema: StructType, partition_by: Sequence[str]) -> Column:
    """The number of rows with a text that would not come back from the name of a folder; to aggregate."""
    texts = [
        column(each.name) for each in _partitions(schema, partition_by) if isinstance(each.dataType, _TEXTS)
    ]
    unnamed = [text.isin(*_OF_NULL) | text.endswith(_HIDDEN_END) for text in texts]
    return sql.count_if(reduce(Column.__or__, unnamed, sql.lit(False)))


def refuse_single_partitions(session: SparkSession, options: Mapping[str, Any]) -> None:
    """Raise ConnectorError if the session asks Spark to overwrite no partitions but those with new rows."""
    if options["partition_by"] and str(session.conf.get(_OVERWRITE_MODE)).lower() == "dynamic":
        raise ConnectorError(
            "refused: INSERT OVERWRITE replaces the whole folder with all of its partitions, and"
            f" {_OVERWRITE_MODE} is dynamic; set it to static, or give each partition a table of its own,"
            " whose path is the folder of the partition"
        )


def _partitions(schema: StructType, partition_by: Sequence[str]) -> list[StructField]:
    names = {name.lower() for name in partition_by}
    return [field for field in schema.fields if field.name.lower() in names]
