"""Rows as the text that COPY of PostgreSQL reads, computed by Spark itself."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from spark_runner.connectors.rows import struct_as_json

_WITH_ZONE = "yyyy-MM-dd HH:mm:ss.SSSSSSXXXXX"
_NULL = "\\N"
_PLAIN = (NumericType, BooleanType, DateType, TimestampNTZType, TimestampType)
"""Types whose texts have no character that COPY or arrays need a backslash for."""


def line(fields: Sequence[tuple[Column, DataType, str]]) -> Column:
    """A row as one line; each field has a type of Spark and that of the column of the table."""
    parts = list[Column]()
    for value, kind, target in fields:
        if parts:
            parts.append(sql.lit("\t"))
        text = as_text(value, kind, target)
        parts.append(sql.coalesce(text if isinstance(kind, _PLAIN) else _escaped(text), sql.lit(_NULL)))
    return sql.concat(*parts, sql.lit("\n"))


def as_text(value: Column, kind: DataType, target: str) -> Column:
    """A value as the text of a type of PostgreSQL."""
    match kind:
        case TimestampType():
            is_clock = target.endswith("without time zone")
            return _clock(value) if is_clock else sql.date_format(value, _WITH_ZONE)
        case BinaryType():
            return sql.concat(sql.lit("\\x"), sql.hex(value))
        case ArrayType() if "json" not in target:
            return _array(value, kind, target)
        case ArrayType() | MapType() | StructType():
            return _json(value, kind)
    return sql.to_json(value) if isinstance(kind, VariantType) else value.cast("string")


def _clock(value: Column) -> Column:
    return value.cast("timestamp_ntz").cast("string")


def _array(value: Column, kind: ArrayType, target: str) -> Column:
    element, of = kind.elementType, target.removesuffix("[]")

    def item(each: Column) -> Column:
        text = as_text(each, element, of)
        if not isinstance(element, ArrayType | NumericType | BooleanType):
            marked = sql.replace(
                sql.replace(text, sql.lit("\\"), sql.lit("\\\\")), sql.lit('"'), sql.lit('\\"')
            )
            text = sql.concat(sql.lit('"'), marked, sql.lit('"'))
        return sql.coalesce(text, sql.lit("NULL"))

    return sql.concat(sql.lit("{"), sql.array_join(sql.transform(value, item), ","), sql.lit("}"))


def _json(value: Column, kind: DataType) -> Column:
    if isinstance(kind, StructType):
        return sql.when(value.isNotNull(), struct_as_json(value, kind))
    row = StructType().add("v", kind)
    text = struct_as_json(sql.struct(value.alias("v")), row)  # {"v":...}
    return sql.when(
        value.isNotNull(), sql.substring(text, 6, 2**31 - 1).substr(sql.lit(1), sql.length(text) - 6)
    )


def _escaped(text: Column) -> Column:
    for character, mark in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        text = sql.replace(text, sql.lit(character), sql.lit(mark))
    return text


def plain_text(value: Column, kind: DataType) -> Column:
    """A value for a column that JDBC writes as a text or as it is."""
    match kind:
        case MapType() | StructType() | ArrayType():
            return _json(value, kind)
        case VariantType():
            return sql.to_json(value)
        case StringType():
            return value.cast("string")
    return value
