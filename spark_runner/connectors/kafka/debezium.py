"""Rows from the change events of Debezium in JSON, with or without their schema."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_runner.connectors.json_types import typed
from spark_runner.connectors.kafka.changes import CHANGE_METADATA
from spark_runner.connectors.kafka.whole_json import is_whole, object_of, whole_json

CHANGE = "__orchestrator_change"  # the column with what an event says beside the row
_EVENT, _KEY_ROW, _OP, _READ, _ROW, _WHY, _FITS = (
    f"__orchestrator_{name}" for name in ("event", "key_row", "op", "read", "row", "why", "fits")
)
_DELETE, _WITH_ROW = "d", ("c", "r", "u", "d")  # others, as that of TRUNCATE, have no row
_TEXTS = [StructField(name, StringType()) for name in ("db", "schema", "table")]
_SOURCE = StructType([StructField("ts_ms", LongType()), *_TEXTS])
_READ_AS_TEXT = (DateType, TimestampType, TimestampNTZType, BooleanType)
_NUMBER = r"\A-?\d{1,10}\z"
# What Debezium writes for a value that the log of PostgreSQL does not have; the second is its base64.
_UNAVAILABLE = ("__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==")


def with_events(frame: DataFrame, schema: StructType, options: Mapping[str, Any]) -> DataFrame:
    """The records of a topic with the parts of their events, each in a column that Spark computes once.

    With option `tombstones`, a record without a value is a delete with the columns of its key; it is left out
    if the key has none of them, and without the option.
    """
    tombstones, is_tombstone = options.get("tombstones"), sql.col("value").isNull()
    frame = frame.where(~is_tombstone | _may_have_row(schema) if tombstones else ~is_tombstone)
    row = StructType([StructField(each.name, _read_as(each.dataType)) for each in schema])
    event = StructType().add("before", row).add("after", row).add("op", StringType())
    event = event.add("ts_ms", LongType()).add("source", _SOURCE)
    whole = StructType([*event.fields]).add("payload", event)
    frame = frame.withColumn(_EVENT, whole_json(sql.col("value").cast("string"), whole))
    op, found = _part("op"), sql.when(_is_gone(), _part("before")).otherwise(_part("after"))
    if tombstones:
        has_row = is_tombstone & _has_columns(schema) & _is_object(sql.col("key").cast("string"))
        frame = frame.withColumn(_KEY_ROW, sql.when(has_row, whole_json(_key_text(), row)))
        op = sql.when(is_tombstone, _DELETE).otherwise(op)
        found = sql.when(is_tombstone, _row_of_key(row)).otherwise(found)
    frame = frame.withColumn(_OP, op).withColumn(_READ, found)
    read, cell_of = sql.col(_READ), sql.col(_ROW)
    cells = [_typed(read[each.name], each.dataType).alias(each.name) for each in schema]
    frame = frame.withColumn(_ROW, sql.struct(*cells)).withColumn(_WHY, _why(schema, options))
    fits = (is_tombstone | is_whole(sql.col(_EVENT), whole)) & read.isNotNull()
    fits &= sql.col(_OP).isin(*_WITH_ROW)
    for each in schema:
        if isinstance(each.dataType, _READ_AS_TEXT):
            fits &= read[each.name].isNull() | cell_of[each.name].isNotNull()
    fits &= sql.col(_WHY).isNull()
    return frame.withColumn(_FITS, sql.coalesce(fits, sql.lit(False)))


def changed_rows(text: Column, schema: StructType, unread: str, *, explains: bool) -> Column:
    """The row of an event as a struct, in a frame of `with_events`: `after`, of a delete `before`.

    It has CHANGE and a last column `unread` with the text of an event that has no row with these columns,
    which begins with the reason if it `explains`.
    """
    text = sql.coalesce(text, sql.concat(sql.lit("key "), sql.col("key").cast("string")))
    if explains:
        text = sql.concat(sql.coalesce(sql.col(_WHY), sql.lit("")), text)
    fits, row = sql.col(_FITS), sql.col(_ROW)
    cells = [sql.when(fits, row[name]).alias(name) for name in schema.fieldNames()]
    return sql.struct(*cells, _change().alias(CHANGE), sql.when(~fits, text).alias(unread))


def with_change(frame: DataFrame, metadata: str, value: str) -> DataFrame:
    """The frame whose column `metadata` also has what the events in the column `value` say."""
    found = sql.col(metadata)
    for name in CHANGE_METADATA:
        found = found.withField(name, sql.col(value)[CHANGE][name])
    return frame.withColumn(metadata, found)


def _part(name: str) -> Column:
    """A part of an event, which is the whole value or beside its schema."""
    event = object_of(sql.col(_EVENT))
    return sql.when(event["payload"].isNotNull(), event["payload"][name]).otherwise(event[name])


def _key_text() -> Column:
    """The key of a record as the JSON of its columns, which may be beside their schema."""
    key = sql.col("key").cast("string")
    payload = sql.get_json_object(key, "$.payload")
    return sql.when(payload.startswith("{"), payload).otherwise(key)


def _has_columns(schema: StructType) -> Column:
    """Whether a key has a column of the table; NULL for a key that cannot be read."""
    names = sql.array(*map(sql.lit, schema.fieldNames()))
    return sql.arrays_overlap(sql.json_object_keys(_key_text()), names)


def _may_have_row(schema: StructType) -> Column:
    return sql.col("key").isNotNull() & sql.coalesce(_has_columns(schema), sql.lit(True))


def _is_object(text: Column) -> Column:
    nothing = StructType()
    return is_whole(whole_json(text, nothing), nothing)


def _row_of_key(row: StructType) -> Column:
    found = sql.col(_KEY_ROW)
    return sql.when(is_whole(found, row), object_of(found))


def _why(schema: StructType, options: Mapping[str, Any]) -> Column:
    """Why an event with a row does not have all values of these columns; NULL if it does."""
    reason = sql.when(
        _has_placeholder(schema),
        "it lacks values that are stored apart, which PostgreSQL writes with REPLICA IDENTITY FULL: ",
    )
    if not options["fail_on_missing_field"]:
        return reason
    # The names are a second reading of the event: only where a column is NULL.
    has_null = sql.lit(False)
    for name in schema.fieldNames():
        has_null |= sql.col(_READ)[name].isNull()
    names = sql.array(*map(sql.lit, schema.fieldNames()))
    missing = sql.when(has_null, sql.array_except(names, sql.json_object_keys(_row_text())))
    return reason.when(
        sql.size(missing) > 0, sql.concat(sql.lit("it lacks "), sql.array_join(missing, ", "), sql.lit(": "))
    )


def _row_text() -> Column:
    """The row of an event as JSON."""
    value, found = sql.col("value").cast("string"), list[Column]()
    for whole in ("$.payload", "$"):
        before, after = (sql.get_json_object(value, f"{whole}.{part}") for part in ("before", "after"))
        found.append(sql.when(_is_gone(), before).otherwise(after))
    return sql.when(object_of(sql.col(_EVENT))["payload"].isNotNull(), found[0]).otherwise(found[1])


def _has_placeholder(schema: StructType) -> Column:
    found = sql.lit(False)
    for each in schema:
        cell = sql.col(_ROW)[each.name]
        match each.dataType:
            case StringType():
                found |= cell.isin(*_UNAVAILABLE)
            case BinaryType():
                found |= cell == sql.lit(_UNAVAILABLE[0].encode())
            case ArrayType() | MapType():
                found |= cell.cast("string").contains(_UNAVAILABLE[0])
    return found


def _is_gone() -> Column:
    return sql.col(_OP) == _DELETE


def _change() -> Column:
    source = _part("source")
    cells = {
        "op": sql.col(_OP),
        "deleted": _is_gone(),
        "ingestion_timestamp": sql.timestamp_millis(_part("ts_ms")),
        "source_timestamp": sql.timestamp_millis(source["ts_ms"]),
        "source_database": source["db"],
        "source_schema": source["schema"],
        "source_table": source["table"],
    }
    return sql.struct(*[cells[name].alias(name) for name in CHANGE_METADATA])


def _read_as(kind: DataType) -> DataType:
    """Spark would take a number for the seconds of a TIMESTAMP, and refuse that of a DATE or BOOLEAN."""
    return StringType() if isinstance(kind, _READ_AS_TEXT) else kind


def _typed(value: Column, kind: DataType) -> Column:
    """The value of a column from what was read; NULL if it does not fit.

    A DATE is the number of days since 1970, a BOOLEAN of MySQL is 0 or 1. A number is no TIMESTAMP: its unit
    depends on the column in the database.
    """
    match kind:
        case BooleanType():
            is_true = sql.when(value.isin("true", "1"), sql.lit(True))
            return is_true.when(value.isin("false", "0"), sql.lit(False))
        case DateType():
            days = sql.date_from_unix_date(value.try_cast("int"))
            return sql.when(value.rlike(_NUMBER), days).otherwise(value.try_cast(kind))
        case TimestampType() | TimestampNTZType():
            return sql.when(~value.rlike(r"\A-?\d+\z"), value.try_cast(kind))
    return typed(value, kind)
