"""Rows as text, in the form in which a quarantine keeps them."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StructType, TimestampType

from spark_runner.connectors.map_keys import with_readable_keys, with_text_keys, with_typed_keys
from spark_runner.connectors.templates import pieces

JSON_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXXXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
"""The formats of rows as JSON; those of Spark would lose microseconds, and seconds of offsets of zones."""
_PLAIN: Mapping[str, str] = {}
_ASCII: Mapping[str, str] = {"writeNonAsciiCharacterAsCodePoint": "true"}
IN_UTC: Mapping[str, str] = {"timeZone": "UTC"}
"""A further option of texts that are keys: one time has one text, whatever the zone of the session."""


def row_as_json(
    frame: DataFrame, names: Sequence[str], *, is_ascii: bool = False, more: Mapping[str, str] = _PLAIN
) -> Column:
    """These columns of a row in the form of the quarantine; NULL without any.

    `is_ascii`: other characters are escaped, for systems that cannot keep them. `more` are options of Spark.
    """
    if not names:
        return sql.lit(None).cast("string")
    row = StructType([frame.schema[name] for name in names])
    return struct_as_json(sql.struct(*[column(name) for name in names]), row, is_ascii=is_ascii, more=more)


def struct_as_json(
    row: Column, kind: DataType, *, is_ascii: bool = False, more: Mapping[str, str] = _PLAIN
) -> Column:
    """Likewise, for the columns inside of one, which has the type `kind`."""
    return _as_json(with_readable_keys(row, kind, _as_json), {**more, **(_ASCII if is_ascii else _PLAIN)})


def struct_from_json(text: Column, kind: StructType) -> Column:
    """The columns of a row from this form, as a struct; a text in another form fails the job."""

    def read(each: Column, struct: StructType) -> Column:
        value = sql.from_json(each, with_text_keys(struct), {"mode": "FAILFAST", **JSON_OPTIONS})
        return with_typed_keys(value, struct, read)

    return read(text, kind)


def _as_json(row: Column, more: Mapping[str, str] = _PLAIN) -> Column:
    return sql.to_json(row, {"ignoreNullFields": "false", **JSON_OPTIONS, **more})


def row_of(frame: DataFrame, *, is_ascii: bool = False) -> Column:
    """The rows of a frame in this form: for the column `row` of `Written.rejected`."""
    return row_as_json(frame, frame.columns, is_ascii=is_ascii)


def column(name: str) -> Column:
    """The column of this name, whatever characters it has."""
    return sql.col(f"`{name.replace('`', '``')}`")


def text_of(name: str, frame: DataFrame | None) -> Column:
    """The text of a column, as Spark shows it.

    With the frame it is for a key: a TIMESTAMP is in UTC, so that one text is one time in each zone.
    """
    value = column(name)
    if frame is None or not isinstance(type_in(frame, name), TimestampType):
        return value.cast("string")
    epoch = sql.lit("1970-01-01").cast("timestamp_ntz")
    utc = sql.timestamp_add("MICROSECOND", sql.unix_micros(value), epoch).cast("string")
    return sql.concat(sql.replace(utc, sql.lit(" "), sql.lit("T")), sql.lit("Z"))


def type_in(frame: DataFrame, name: str) -> DataType:
    """The type of a column."""
    return frame.select(column(name)).schema[0].dataType


def filled(template: str, frame: DataFrame | None = None) -> Column:
    """The text that a template makes of each row, as STRING; NULL where one of its columns is NULL.

    With the frame, it is for a key: see `text_of`.
    """
    return sql.concat(
        *[text_of(each.text, frame) if each.is_column else sql.lit(each.text) for each in pieces(template)]
    )
