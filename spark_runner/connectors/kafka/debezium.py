"""Rows from the change events of Debezium in JSON, with or without their schema."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_runner.connectors.kafka.changes import CHANGE_METADATA

CHANGE = "__orchestrator_change"  # the column with what an event says beside the row
_DELETE, _WITH_ROW = "d", ("c", "r", "u", "d")  # others, as that of TRUNCATE, have no row
_TEXTS = [StructField(name, StringType()) for name in ("db", "schema", "table")]
_SOURCE = StructType([StructField("ts_ms", LongType()), *_TEXTS])
_READ_AS_TEXT = (DateType, TimestampType, TimestampNTZType, BooleanType)
_NUMBER = r"\A-?\d{1,10}\z"


def with_change_column(schema: StructType) -> StructType:
    """The columns of `changed_rows` beside the text of an event that does not fit."""
    return StructType([*schema.fields, StructField(CHANGE, StringType())])


def changed_rows(text: Column, schema: StructType, unread: str) -> Column:
    """The row of an event as a struct: `after`, of a delete `before`.

    It has CHANGE and a last column `unread` with the text of an event that has no row with these columns.
    """
    row = StructType([StructField(each.name, _read_as(each.dataType)) for each in schema])
    event = StructType().add("before", row).add("after", row).add("op", StringType())
    event = event.add("ts_ms", LongType()).add("source", _SOURCE)
    whole = StructType([*event.fields]).add("payload", event).add(unread, StringType())
    read = sql.from_json(text, whole, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": unread})

    def of_event(found: Column) -> Column:
        plain = sql.struct(*[found[name].alias(name) for name in event.fieldNames()])
        return _once(sql.coalesce(found["payload"], plain), lambda each: of_change(each, found[unread]))

    def of_change(found: Column, damaged: Column) -> Column:
        is_gone = found["op"] == _DELETE
        values = sql.when(is_gone, found["before"]).otherwise(found["after"])
        cells = sql.struct(*[_typed(values[each.name], each.dataType).alias(each.name) for each in schema])
        fits = damaged.isNull() & values.isNotNull() & found["op"].isin(*_WITH_ROW)
        return _once(
            sql.struct(
                cells.alias("row"), values.alias("read"), sql.coalesce(fits, sql.lit(False)).alias("fits")
            ),
            lambda each: checked(each, _change(found, is_gone)),
        )

    def checked(found: Column, change: Column) -> Column:
        fits = found["fits"]
        for each in schema:
            if isinstance(each.dataType, _READ_AS_TEXT):
                fits &= found["read"][each.name].isNull() | found["row"][each.name].isNotNull()
        cells = [sql.when(fits, found["row"][name]).alias(name) for name in schema.fieldNames()]
        return sql.struct(*cells, change.alias(CHANGE), sql.when(~fits, text).alias(unread))

    return _once(read, of_event)


def with_change(frame: DataFrame, metadata: str, value: str) -> DataFrame:
    """The frame whose column `metadata` also has what the events in the column `value` say."""
    found = sql.col(metadata)
    for name in CHANGE_METADATA:
        found = found.withField(name, sql.col(value)[CHANGE][name])
    return frame.withColumn(metadata, found)


def _once(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use(value)`; Spark computes the value once, however often it is used."""
    return sql.transform(sql.array(value), use)[0]


def _change(event: Column, is_gone: Column) -> Column:
    source = event["source"]
    cells = {
        "op": event["op"],
        "deleted": is_gone,
        "ingestion_timestamp": sql.timestamp_millis(event["ts_ms"]),
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
    return value
