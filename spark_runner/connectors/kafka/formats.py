"""Columns from the bytes of records and back: JSON, CSV, raw, Avro; change events of Debezium to read."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, StringType, StructType

from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.files.hadoop import file_system_at
from spark_runner.connectors.java_classes import java_class
from spark_runner.connectors.kafka.csv_lines import as_csv, from_csv
from spark_runner.connectors.kafka.debezium import changed_rows
from spark_runner.connectors.kafka.whole_json import with_whole_json
from spark_runner.connectors.rows import IN_UTC, JSON_OPTIONS, column, row_as_json, text_of
from spark_runner.protocol.text import did_you_mean

_UNREAD = "__orchestrator_unread"
_SHOWN = 200  # characters of a record in an error message
# Errors of Hadoop that a further attempt meets again.
_REFUSALS = ("FileNotFoundException", "AccessControlException", "UnsupportedFileSystemException")
_MAX_SCHEMA_BYTES = 1 << 20  # of a file: the driver holds it in memory
_SQL_TIMES = {  # as Flink writes them in its format `SQL`
    "timestampFormat": "yyyy-MM-dd HH:mm:ss[.SSSSSS]",
    "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss[.SSSSSS]",
}
_SQL_TIME_OF_KEY = "yyyy-MM-dd HH:mm:ss[.SSSSSS]XXX"  # ends in Z


def decoded(
    frame: DataFrame,
    name: str,
    kind: str,
    schema: StructType,
    options: Mapping[str, Any],
    *,
    into: str,
    record: str | None,
) -> DataFrame:
    """The frame with the columns of `schema` from the bytes in the column `name`, as the struct `into`.

    It is NULL for NULL. With `record`, the struct has one more column of that name: the text of bytes that do
    not fit, or NULL; without it, they fail the query.
    """
    text, unread = column(name).cast("string"), record or _UNREAD
    match kind:
        case "json":
            frame = with_whole_json(frame, into, text, schema, unread)
            if options["fail_on_missing_field"]:
                frame = frame.withColumn(into, _without_missing(column(into), text, schema, unread))
        case "csv":
            frame = frame.withColumn(into, from_csv(text, schema, unread, options))
        case "debezium-json":
            frame = frame.withColumn(into, changed_rows(text, schema, unread, explains=record is None))
        case "raw":
            return frame.withColumn(into, _raw(column(name), schema, record))
        case "avro":
            return frame.withColumn(into, _avro(frame, column(name), schema, options, record))
        case _:
            raise ConnectorError(f"this driver has no format '{kind}'")
    return frame if record is not None else frame.withColumn(into, _or_failure(column(into)))


def encoded(
    frame: DataFrame, names: Sequence[str], kind: str, options: Mapping[str, Any], *, is_key: bool = False
) -> Column:
    """These columns as the bytes of a record; raises ConnectorError if the format cannot hold them.

    A key has each TIMESTAMP in UTC, so that one time has one key, whatever the zone of the session.
    """
    if not names:
        return sql.lit(None).cast("binary")
    struct = sql.struct(*[column(name) for name in names])
    more = IN_UTC if is_key else {}
    match kind:
        case "json" if options["timestamp_format"] == "SQL":
            times = _SQL_TIMES | ({"timestampFormat": _SQL_TIME_OF_KEY} if is_key else {})
            found = sql.to_json(struct, {"ignoreNullFields": "false", **JSON_OPTIONS, **times, **more})
        case "json":
            found = row_as_json(frame, names, more=more)
        case "csv":
            found = as_csv(names, options, more)
        case "raw":
            if len(names) != 1:
                raise ConnectorError(f"format 'raw' has one column, not {len(names)} ({', '.join(names)})")
            is_binary = isinstance(frame.schema[names[0]].dataType, BinaryType)
            found = column(names[0]) if is_binary else text_of(names[0], frame if is_key else None)
        case "avro":
            from pyspark.sql.avro.functions import to_avro  # noqa: PLC0415 - few tables need it

            schema = avro_schema(frame, StructType([frame.schema[name] for name in names]), options)
            return to_avro(struct, schema)
        case _:
            raise ConnectorError(f"this driver has no format '{kind}'")
    return found.cast("binary")


def _raw(value: Column, schema: StructType, record: str | None) -> Column:
    if len(schema.fields) != 1:
        raise ConnectorError(f"format 'raw' has one column, not {', '.join(schema.fieldNames())}")
    (field,) = schema.fields
    text = value.cast("string")
    if isinstance(field.dataType, BinaryType | StringType):
        found, unread = value.cast(field.dataType), sql.lit(None).cast("string")
    elif record is None:
        found, unread = text.cast(field.dataType), sql.lit(None)
    else:
        found = text.try_cast(field.dataType)
        unread = sql.when(text.isNotNull() & found.isNull(), text)
    cells = [found.alias(field.name)]
    return sql.struct(*cells, *([] if record is None else [unread.alias(record)]))


def _without_missing(found: Column, text: Column, schema: StructType, record: str) -> Column:
    names = schema.fieldNames()
    missing = sql.array_except(sql.array(*map(sql.lit, names)), sql.json_object_keys(text))
    unread = sql.when(sql.size(missing) == 0, found[record]).otherwise(text)
    cells = [found[name].alias(name) for name in names]
    return sql.when(text.isNotNull(), sql.struct(*cells, unread.alias(record)))


def _or_failure(found: Column) -> Column:
    """The struct; unread text in it fails the query with the place of the record."""
    place = [
        sql.col("topic"),
        sql.lit(", partition "),
        sql.col("partition"),
        sql.lit(", offset "),
        sql.col("offset"),
    ]
    begin = sql.substring(found[_UNREAD], 1, _SHOWN)
    words = sql.concat(
        sql.lit("a record does not fit the declared columns: topic "), *place, sql.lit(": "), begin
    )
    return sql.when(found[_UNREAD].isNull(), found).otherwise(sql.raise_error(words))


def _avro(
    frame: DataFrame, value: Column, schema: StructType, options: Mapping[str, Any], record: str | None
) -> Column:
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415 - few tables need it

    mode = {"mode": "FAILFAST" if record is None else "PERMISSIVE"}
    text = avro_schema(frame, schema, options)
    found = from_avro(value, text, mode)
    if record is None:
        return found
    # Bytes that do not fit become a row of NULL alone, also in fields that the table does not declare.
    is_unread = value.isNotNull()
    for each in json.loads(text)["fields"]:
        is_unread &= found[each["name"]].isNull()
    cells = [found[name].alias(name) for name in schema.fieldNames()]
    return sql.struct(*cells, sql.when(is_unread, sql.base64(value)).alias(record))


def of_key(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options for the key of a record: the schema of Avro is that of values."""
    return {**options, "avro_schema": "", "avro_schema_file": ""}


def avro_schema(frame: DataFrame, schema: StructType, options: Mapping[str, Any]) -> str:
    """The schema of Avro as JSON: that of the options, or one from the columns.

    Raises ConnectorError for a text that is no schema of a record with these columns.
    """
    session, file = frame.sparkSession, str(options["avro_schema_file"])
    if options["avro_schema"]:
        return _with_fields(str(options["avro_schema"]), schema, f"'{file}'" if file else "avro_schema")
    if file:
        return _with_fields(read_schema(session, file), schema, f"'{file}'")
    convert = java_class(session, "org.apache.spark.sql.avro.SchemaConverters")
    parsed: Any = session._jsparkSession.parseDataType(schema.json())  # noqa: SLF001 - PySpark has no public way
    try:
        return str(convert.toAvroType(parsed, False, "row", ""))
    except TypeError as error:
        raise ConnectorError("Spark has no module for Avro here: add spark-avro to its packages") from error


def _with_fields(text: str, schema: StructType, place: str) -> str:
    """The text, if it is the schema of a record that has the columns."""
    try:
        found = json.loads(text)
        fields = [str(each["name"]) for each in found["fields"]] if found["type"] == "record" else None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConnectorError(f"{place} is no schema of Avro for a record: {error!r}") from error
    if fields is None:
        raise ConnectorError(f"{place} is a schema of Avro for '{found['type']}'; a value is a record")
    known = {name.lower() for name in fields}
    if missing := next((name for name in schema.fieldNames() if name.lower() not in known), None):
        hint = did_you_mean(missing, fields) or f"; it has {', '.join(fields) or 'none'}"
        raise ConnectorError(f"the schema of Avro in {place} has no field '{missing}'{hint}")
    return text


def read_schema(session: SparkSession, file: str) -> str:
    """The text of the file of a schema, on the host of the driver or in a file system of Hadoop.

    Raises ConnectorError, and Unreachable if the file system fails.
    """
    try:
        files, path = file_system_at(session, file)
        if not files.exists(path):
            raise ConnectorError(f"the driver finds no file '{file}' with the schema of Avro")
        if (size := int(files.getFileStatus(path).getLen())) > _MAX_SCHEMA_BYTES:
            limit = f"the limit is {_MAX_SCHEMA_BYTES:,}"
            raise ConnectorError(f"'{file}' is no schema of Avro: it has {size:,} bytes, {limit}")
        stream = files.open(path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()
    except Py4JJavaError as error:
        reason, name = str(error.java_exception.getMessage()), str(error.java_exception.getClass().getName())
        kind = ConnectorError if name.endswith(_REFUSALS) else Unreachable
        raise kind(f"the schema of Avro in '{file}' cannot be read: {reason}") from error
    except IllegalArgumentException as error:
        raise ConnectorError(f"the schema of Avro in '{file}' cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise ConnectorError(f"'{file}' is no schema of Avro: it is not in UTF-8") from error
