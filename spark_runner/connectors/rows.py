"""Rows as text, in the form in which a quarantine keeps them."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

JSON_OPTIONS = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS][XXXXX]",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]",
}
"""The formats of rows as JSON; those of Spark would lose microseconds, and seconds of offsets of zones."""


def row_as_json(values: Mapping[str, Column]) -> Column:
    """A row in the form of the quarantine; NULL without values."""
    if not values:
        return sql.lit(None).cast("string")
    return struct_as_json(sql.struct(*[value.alias(name) for name, value in values.items()]))


def struct_as_json(row: Column) -> Column:
    """Likewise, for the columns inside of one."""
    return sql.to_json(row, {"ignoreNullFields": "false", **JSON_OPTIONS})


def row_of(frame: DataFrame) -> Column:
    """The rows of a frame in this form: for the column `row` of `Written.rejected`."""
    return row_as_json({name: column(name) for name in frame.columns})


def column(name: str) -> Column:
    """The column of this name, whatever characters it has."""
    return sql.col(f"`{name.replace('`', '``')}`")
