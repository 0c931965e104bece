"""The columns of a table from the records of its topics."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.kafka.changes import DEBEZIUM
from spark_runner.connectors.kafka.debezium import with_change, with_events
from spark_runner.connectors.kafka.formats import decoded, of_key
from spark_runner.connectors.kafka.marks import without_marked

METADATA = "_metadata"  # the column with what Kafka keeps of each record; Spark has one for files alone
_SPECIAL = ("topic_column", "headers_column", "delete_column")
_VALUE = "__orchestrator_value"
_KEY = "__orchestrator_key"


def columns(
    frame: DataFrame, options: Mapping[str, Any], schema: StructType, record: str | None
) -> DataFrame:
    """The declared columns of the records, and METADATA."""
    frame = without_marked(frame, options)
    special = {str(options[name]).lower(): name for name in _SPECIAL}
    keys = {name.lower() for name in options["key_fields"]}
    raw_or_split = options["value_fields_include"] == "except_key" or options["format"] == "raw"
    key_schema = StructType([each for each in schema if each.name.lower() in keys])
    of_value = StructType(
        [
            each
            for each in schema
            if each.name.lower() not in special and not (raw_or_split and each.name.lower() in keys)
        ]
    )
    deletes = bool(options["delete_column"])
    if deletes and not keys:
        raise ConnectorError("delete_column needs option 'key_fields' to read: which columns are the key")
    if options["format"] == DEBEZIUM:
        frame = with_events(frame, of_value, options)
    elif not deletes and options["format"] != "raw":
        frame = frame.where(sql.col("value").isNotNull())
    frame = decoded(frame, "value", options["format"], of_value, options, into=_VALUE, record=record)
    has_key = bool(keys) and (raw_or_split or deletes)
    if has_key:
        kind = options["key_format"] or ("raw" if len(keys) == 1 else "json")
        frame = decoded(frame, "key", kind, key_schema, of_key(options), into=_KEY, record=record)
    found = frame.withColumn(METADATA, _metadata())
    if options["format"] == DEBEZIUM:
        found = with_change(found, METADATA, _VALUE)
    cells = [
        _cell(each.name, special, keys, options, raw_or_split).cast(each.dataType).alias(each.name)
        for each in schema
    ]
    unread = [] if record is None else [_unread(record, with_key=has_key).alias(record)]
    return found.select(*cells, *unread, METADATA)


def _unread(record: str, *, with_key: bool) -> Column:
    """The text of a value that does not fit, or that of a key."""
    of_key = [sql.concat(sql.lit("key "), sql.col(_KEY)[record])] if with_key else []
    return sql.coalesce(sql.col(_VALUE)[record], *of_key)


def _cell(
    name: str, special: Mapping[str, str], keys: set[str], options: Mapping[str, Any], is_split: bool
) -> Column:
    lower = name.lower()
    match special.get(lower):
        case "topic_column":
            return sql.col("topic")
        case "headers_column":
            return _headers()
        case "delete_column":
            return sql.col("value").isNull()
    if lower in keys and is_split:
        return sql.col(_KEY)[name]
    value = sql.col(_VALUE)[name]
    return sql.coalesce(value, sql.col(_KEY)[name]) if lower in keys and options["delete_column"] else value


def _metadata() -> Column:
    names = {"key": "key", "topic": "topic", "partition": "partition", "offset": "offset"}
    cells = [sql.col(each).alias(name) for name, each in names.items()]
    cells += [sql.col("timestamp").alias("timestamp"), _timestamp_type().alias("timestamp_type")]
    return sql.struct(*cells, _headers().alias("headers"))


def _timestamp_type() -> Column:
    kind = sql.col("timestampType")
    return sql.when(kind == 0, "CreateTime").when(kind == 1, "LogAppendTime")


def _headers() -> Column:
    """The headers by their name; of several with one name the last."""
    last = (
        "map_from_entries(filter(headers, (h, i) -> NOT exists("
        "slice(headers, i + 2, greatest(size(headers) - i - 1, 0)), later -> later.key = h.key)))"
    )
    return sql.expr(last)
