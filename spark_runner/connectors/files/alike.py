"""Checks that the rows of an INSERT INTO have the same columns as the existing ones."""

import json
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import NullType, StructField, StructType

from spark_runner.connectors.errors import UnlikeColumns
from spark_runner.connectors.files.format import COLUMNAR
from spark_runner.connectors.files.patterns import escaped

# The formats by the ends of the names of Spark's files.
_FORMATS = {**{name: name for name in ("parquet", "csv", "json", "orc", "avro")}, "txt": "text"}
_SHAPING = ("header", "delimiter", "escape", "partition_by")  # options of a table that its readers depend on
_ADVICE = "INSERT INTO adds rows of the same columns, INSERT OVERWRITE replaces the existing data"


def refuse_unlike_file(
    frame: DataFrame, some_file: str, connector: str, options: Mapping[str, Any], reading: Mapping[str, str]
) -> None:
    """Raise UnlikeColumns if columns or partitions differ from those of this file of the target.

    The check covers what a later reader would refuse or confuse: of Parquet names, order and types, of CSV
    names and order (without a header their number), of JSON the names missing from its first record. ORC is
    as Parquet; text has no names.
    """
    path = str(options["path"])
    partitions = [name.lower() for name in options["partition_by"]]
    *folders, own = some_file.split("/")
    there = [urllib.parse.unquote(folder.partition("=")[0]).lower() for folder in folders]
    formats = {_FORMATS[end] for end in own.split(".") if end in _FORMATS}
    if formats and connector not in formats:
        its = ", ".join(sorted(formats))
        raise UnlikeColumns(f"the table is {connector}, the data in '{path}' is {its}; {_ADVICE}")
    if partitions != there:
        what = f"the table has {_partitions(partitions)}, the data in '{path}' has {_partitions(there)}"
        raise UnlikeColumns(f"{what}; {_ADVICE}")
    given = [field for field in frame.schema if field.name.lower() not in partitions]
    found = _columns_of(frame, escaped(f"{path.rstrip('/')}/{some_file}"), connector, reading)
    if found and (difference := _difference(given, found, connector, options)):
        raise UnlikeColumns(f"{_columns(given)}, in '{path}' are {difference}; {_ADVICE}")


def refuse_unlike_tables(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raise UnlikeColumns if two tables of one location have different formats."""
    for name, its, mine in (
        ("connector", one["connector"], other["connector"]),
        *((name, one["options"].get(name), other["options"].get(name)) for name in _SHAPING),
    ):
        if its != mine:
            what = f"{name} {mine!r}, table '{one['name']}' of the same place has {its!r}"
            raise UnlikeColumns(f"it has {what}; {_ADVICE}")


def refuse_unlike_queries(
    one: StructType, other: StructType, connector: str, options: Mapping[str, Any]
) -> None:
    """Raise UnlikeColumns if the rows of `other` cannot be added to those of `one`."""
    if difference := _difference(other.fields, one.fields, connector, options):
        raise UnlikeColumns(f"{_columns(other.fields)}, an earlier INSERT gives {difference}; {_ADVICE}")


def _columns_of(
    frame: DataFrame, file: str, connector: str, reading: Mapping[str, str]
) -> Sequence[StructField]:
    session = frame.sparkSession
    if connector != "json":
        return session.read.format(connector).options(**reading).load(file).schema.fields
    first = session.read.text(file).first()  # Spark would read all records to find their types
    try:
        record = json.loads(first[0]) if first else {}
    except ValueError:
        record = {}  # not a record of Spark: its reader reports that
    return [StructField(name, NullType()) for name in record] if isinstance(record, dict) else []


def _difference(
    given: Sequence[StructField], found: Sequence[StructField], connector: str, options: Mapping[str, Any]
) -> str:
    """The columns that were found but not given; empty if both are alike."""
    if connector == "text":
        return ""
    if connector == "json":
        missing = [field.name for field in found if field.name.lower() not in _names(given)]
        return f"records with {', '.join(missing)}" if missing else ""
    if not options.get("header", True):
        return "" if len(given) == len(found) else f"{len(found)} columns"
    if _names(given) != _names(found):
        return f"({', '.join(field.name for field in found)})"
    if connector in COLUMNAR:
        for one, other in zip(given, found, strict=True):
            mine, its = one.dataType.simpleString(), other.dataType.simpleString()
            if mine != its:
                return f"{other.name} as {its}, not {mine}"
    return ""


def _columns(given: Sequence[StructField]) -> str:
    return f"the query gives the columns ({', '.join(field.name for field in given)})"


def _partitions(names: Sequence[str]) -> str:
    return f"partitions by {', '.join(names)}" if names else "no partitions"


def _names(fields: Sequence[StructField]) -> list[str]:
    return [field.name.lower() for field in fields]
