"""Rows as lines of bulk requests: the JVM makes them, much faster than Python.

A row is the line of its action and, unless it is a delete, the line of its document.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, IntegralType, TimestampType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.rows import column, filled, row_as_json, text_of, type_in

_MAX_ID_BYTES = 512  # a longer one would fail all rows of its request


def lines(frame: DataFrame, options: Mapping[str, Any], key: Sequence[str]) -> DataFrame:
    """The rows as `lines` BINARY; `fault` STRING has the others: why, and in its next line, the row.

    Raises ConnectorError for a version that is no number.
    """
    gone, version = str(options["delete_column"]), str(options["version_column"])
    names = [name for name in frame.columns if name.lower() != gone.lower()]
    cells = {"document": row_as_json(frame, names), "_index": filled(options["index"], frame)}
    checks = [(sql.col("_index").isNull(), "a column of its index is NULL")]
    if key:
        cells["_id"] = _id(frame, key)
        checks += [
            (sql.col("_id").isNull(), "a column of its key is NULL"),
            (sql.octet_length("_id") == 0, "its id is empty"),
            (sql.octet_length("_id") > _MAX_ID_BYTES, f"its id has more than {_MAX_ID_BYTES} bytes"),
        ]
    if options["routing"]:
        cells["routing"] = filled(options["routing"], frame)
        checks.append((sql.col("routing").isNull(), "a column of its routing is NULL"))
    if version:
        cells["version"] = _version(frame, version)
        checks.append(
            (~sql.coalesce(sql.col("version") >= 0, sql.lit(False)), "its version is NULL or below 0")
        )
    place = [sql.col(name) for name in cells if name != "document"]
    if version:
        place.append(sql.lit("external").alias("version_type"))
    cells["gone"] = sql.coalesce(column(gone), sql.lit(False)) if gone else sql.lit(False)
    # A step of its own, so that Spark computes each value once.
    given = frame.select(*[value.alias(name) for name, value in cells.items()])
    reason = sql.coalesce(*[sql.when(is_wrong, words) for is_wrong, words in checks])
    given = given.select("*", reason.alias("reason"))
    is_fine = sql.col("reason").isNull()
    return given.select(
        sql.when(is_fine, _lines(str(options["action"]), place).cast("binary")).alias("lines"),
        sql.when(~is_fine, sql.concat("reason", sql.lit("\n"), "document")).alias("fault"),
    )


def _lines(action: str, place: list[Column]) -> Column:
    def head(name: str) -> Column:
        return sql.to_json(sql.struct(sql.struct(*place).alias(name)))

    delete = sql.concat(head("delete"), sql.lit("\n"))
    if action == "delete":
        return delete
    document = [sql.col("document")]
    if action == "update":
        document = [sql.lit('{"doc":'), *document, sql.lit(',"doc_as_upsert":true}')]
    written = sql.concat(head(action), sql.lit("\n"), *document, sql.lit("\n"))
    return sql.when(sql.col("gone"), delete).otherwise(written)


def _version(frame: DataFrame, name: str) -> Column:
    """As it is; of a TIMESTAMP, the microseconds. What would lose digits could hide a newer row."""
    value, kind = column(name), type_in(frame, name)
    if isinstance(kind, TimestampType):
        return sql.unix_micros(value)
    if not isinstance(kind, IntegralType):
        words = f"option 'version_column': '{name}' is {kind.simpleString().upper()}"
        raise ConnectorError(f"{words}; a version is a whole number, such as BIGINT, or a TIMESTAMP")
    return value


def _id(frame: DataFrame, key: Sequence[str]) -> Column:
    """The value of a column; of several, `|` is between them, with a backslash before those in values."""
    values = [
        sql.replace(sql.base64(column(name)), sql.lit("\r\n"))  # Spark divides it into lines
        if isinstance(type_in(frame, name), BinaryType)
        else text_of(name, frame)
        for name in key
    ]
    if len(values) == 1:
        return values[0]
    escaped = [sql.regexp_replace(value, r"([|\\])", r"\\$1") for value in values]
    return sql.concat(*[each for value in escaped for each in (sql.lit("|"), value)][1:])
