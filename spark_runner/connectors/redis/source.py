"""Values of Redis as rows."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import BinaryType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.python_source import TableSource, read_by
from spark_runner.connectors.redis.keys import columns_of_key
from spark_runner.connectors.redis.row_batches import COLUMNS
from spark_runner.connectors.redis.sink import RedisSink
from spark_runner.connectors.rows import struct_from_json

_NO_TEXT = "key '%s' of Redis has a %s that is no text in UTF-8; a column BINARY can have a value"


class RedisSource:
    """The values of all keys that fit the pattern of the table; each master of a cluster is a partition."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The declared columns: `key`, `value`, `score` or `id`, columns of the key, fields of the value.

        Without a column `value`, the values of strings, lists and sets are JSON objects with the columns.
        """
        if schema is None:
            raise ConnectorError("a table of connector 'redis' needs declared columns")
        RedisSink().probe(session, options, schema)
        columns = StructType.fromDDL(COLUMNS)
        assert isinstance(columns, StructType)  # noqa: S101 - for mypy: a list of columns
        raw = read_by(Values, session, options, columns)
        return _declared(raw, options, schema)


def _declared(raw: DataFrame, options: Mapping[str, Any], schema: StructType) -> DataFrame:
    of_key = columns_of_key(options["key"], _text(sql.col("key"), "name"))
    is_hash = options["command"] in {"HSET", "XADD"}
    own = {"key"} if is_hash else {"key", "value"}
    own |= {"score"} if options["command"] == "ZADD" else set()
    members = [each for each in schema.fields if each.name.lower() not in own | of_key.keys()]
    found = raw
    if members and not is_hash:
        parsed = struct_from_json(_text(sql.col("value"), "value"), StructType(members))
        found = raw.select("*", parsed.alias("members"))

    def value(each: StructField) -> Column:
        name = each.name.lower()
        if name in of_key:
            return of_key[name].cast(each.dataType)
        if name in own:
            return _typed(sql.col(name), each)
        if not is_hash:
            return sql.col("members").getField(each.name).cast(each.dataType)
        field = sql.col("fields").getItem(bytearray(each.name.encode()))
        if name == "id" and options["command"] == "XADD":  # an entry may have a field of this name
            field = sql.coalesce(field, sql.col("id").cast("binary"))
        elif name == "value" and len(members) == 1:  # likewise
            field = sql.coalesce(field, _fields_as_json().cast("binary"))
        return _typed(field, each)

    return found.select(*[value(each).alias(each.name) for each in schema.fields])


def _typed(value: Column, column: StructField) -> Column:
    """A key, value or field as its column has it."""
    if isinstance(column.dataType, BinaryType):
        return value
    return (value if column.name.lower() == "score" else _text(value, "value")).cast(column.dataType)


def _fields_as_json() -> Column:
    def text(one: Column, other: Column) -> Column:  # noqa: ARG001 - the other half of a pair
        return _text(one, "field")

    named = sql.transform_keys("fields", text)
    return sql.to_json(sql.transform_values(named, lambda _name, value: _text(value, "field")))


def _text(data: Column, kind: str) -> Column:
    """The text of bytes; others than UTF-8 fail the job."""
    text = data.cast("string")
    # Only what is wrong is made readable: the bytes that are no text are gone there.
    key = sql.make_valid_utf8(sql.col("key").cast("string"))
    wrong = sql.raise_error(sql.format_string(_NO_TEXT, key, sql.lit(kind)))
    return sql.when(text.isNull() | sql.is_valid_utf8(text), text).otherwise(wrong)


class Values(TableSource):
    """Reads values in the tasks of Spark."""

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - of DataSource
        """The reader of this table."""
        from spark_runner.connectors.redis.scan import ValueReader  # noqa: PLC0415 - it imports the client

        return ValueReader(dict(self.table))
