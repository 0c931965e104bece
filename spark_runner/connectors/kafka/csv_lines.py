"""Columns from lines of CSV and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from spark_runner.connectors.csv_texts import csv_options
from spark_runner.connectors.rows import JSON_OPTIONS, column


def from_csv(text: Column, schema: StructType, unread: str, options: Mapping[str, Any]) -> Column:
    """The columns as a struct with a further one, `unread`: a text that is no such line, or NULL."""
    wide = StructType([*schema.fields, StructField(unread, StringType())])
    reading = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": unread}
    found = sql.from_csv(text, _ddl(wide), {**reading, **csv_options(options)})
    # Spark takes a text without a record for one of NULLs.
    is_blank = (text == "") & sql.lit(len(schema) > 1)
    cells = [sql.lit(None).cast(each.dataType).alias(each.name) for each in schema]
    return sql.when(is_blank, sql.struct(*cells, text.alias(unread))).otherwise(found)


def as_csv(names: Sequence[str], options: Mapping[str, Any], more: Mapping[str, str]) -> Column:
    """The columns as one line; `more` are options of Spark."""
    writing = {**csv_options(options), **JSON_OPTIONS, **more}
    line = sql.to_csv(sql.struct(*[column(name) for name in names]), writing)
    # Spark has no line of one column without a value.
    is_null = column(names[0]).isNull()
    return line if len(names) > 1 else sql.when(is_null, options["null_value"]).otherwise(line)


def _ddl(schema: StructType) -> str:
    """The columns as Spark's reader of CSV takes them; their names may have any characters."""
    names = [each.name.replace("`", "``") for each in schema]
    kinds = [each.dataType.simpleString() for each in schema]
    return ", ".join(f"`{name}` {kind}" for name, kind in zip(names, kinds, strict=True))
