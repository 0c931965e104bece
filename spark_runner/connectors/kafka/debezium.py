"""Rows from the change events of Debezium in JSON, with or without their schema."""

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
_EVENT, _OP, _READ, _ROW, _FITS = (
    f"__orchestrator_{name}" for name in ("event", "op", "read", "row", "fits")
)
_DAMAGED = "__orchestrator_damaged"  # the field of an event that Spark cannot read
_DELETE, _WITH_ROW = "d", ("c", "r", "u", "d")  # others, as that of TRUNCATE, have no row
_TEXTS = [StructField(name, StringType()) for name in ("db", "schema", "table")]
_SOURCE = StructType([StructField("ts_ms", LongType()), *_TEXTS])
_READ_AS_TEXT = (DateType, TimestampType, TimestampNTZType, BooleanType)
_NUMBER = r"\A-?\d{1,10}\z"


def with_change_column(schema: StructType) -> StructType:
    """The columns of `changed_rows` beside the text of an event that does not fit."""
    return StructType([*schema.fields, StructField(CHANGE, StringType())])


def with_events(frame: DataFrame, schema: StructType) -> DataFrame:
    """The records of a topic with the parts of their events, each in a column that Spark computes once."""
    row = StructType([StructField(each.name, _read_as(each.dataType)) for each in schema])
    event = StructType().add("before", row).add("after", row).add("op", StringType())
    event = event.add("ts_ms", LongType()).add("source", _SOURCE)
    whole = StructType([*event.fields]).add("payload", event).add(_DAMAGED, StringType())
    reading = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _DAMAGED}
    frame = frame.withColumn(_EVENT, sql.from_json(sql.col("value").cast("string"), whole, reading))
    frame = frame.withColumn(_OP, _part("op"))
    before_or_after = sql.when(_is_gone(), _part("before")).otherwise(_part("after"))
    frame = frame.withColumn(_READ, before_or_after)
    read, typed = sql.col(_READ), sql.col(_ROW)
    cells = [_typed(read[each.name], each.dataType).alias(each.name) for each in schema]
    frame = frame.withColumn(_ROW, sql.struct(*cells))
    fits = sql.col(_EVENT)[_DAMAGED].isNull() & read.isNotNull() & sql.col(_OP).isin(*_WITH_ROW)
    for each in schema:
        if isinstance(each.dataType, _READ_AS_TEXT):
            fits &= read[each.name].isNull() | typed[each.name].isNotNull()
    return frame.withColumn(_FITS, sql.coalesce(fits, sql.lit(False)))


def changed_rows(text: Column, schema: StructType, unread: str) -> Column:
    """The row of an event as a struct, in a frame of `with_events`: `after`, of a delete `before`.

    It has CHANGE and a last column `unread` with the text of an event that has no row with these columns.
    """
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
    event = sql.col(_EVENT)
    return sql.when(event["payload"].isNotNull(), event["payload"][name]).otherwise(event[name])


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
    return value
