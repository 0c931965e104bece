"""Values of Redis as rows."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StringType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.python_source import TableSource, read_by
from spark_runner.connectors.redis.keys import columns_of_key
from spark_runner.connectors.redis.sink import RedisSink
from spark_runner.connectors.rows import struct_from_json

_RAW = "key STRING, value STRING, score DOUBLE, id STRING"


class RedisSource:
    """The values of all keys that fit the pattern of the table; each master of a cluster is a partition."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The declared columns: `key`, `value`, `score` or `id`, columns of the key, fields of the value.

        Without a column `value`, the values of strings, lists and sets are JSON objects with the columns.
        """
        if schema is None:
            raise ConnectorError("a table of connector 'redis' needs declared columns")
        RedisSink().probe(session, options, schema)
        columns = StructType.fromDDL(_RAW)
        assert isinstance(columns, StructType)  # noqa: S101 - for mypy: a list of columns
        raw = read_by(Values, session, options, columns)
        return _declared(raw, options, schema)


def _declared(raw: DataFrame, options: Mapping[str, Any], schema: StructType) -> DataFrame:
    of_key = columns_of_key(options["key"])
    has_fields = options["command"] in {"HSET", "XADD"}
    own = {"key"} if options["command"] in {"ZADD", "XADD"} else {"key", "value"}
    special = own | ({"score", "value"} if options["command"] == "ZADD" else set())
    fields = [each for each in schema.fields if each.name.lower() not in special | of_key.keys()]
    strings = StructType([StructField(each.name, StringType()) for each in fields])
    parsed = struct_from_json(sql.col("value"), strings if has_fields else StructType(fields))
    found = raw.select("*", parsed.alias("fields")) if fields else raw

    def value(each: StructField) -> Column:
        name = each.name.lower()
        if name in of_key:
            return of_key[name].cast(each.dataType)
        if name in special:
            return sql.col(name).cast(each.dataType)
        field = sql.col("fields").getField(each.name)
        if name == "id" and options["command"] == "XADD":  # an entry may have a field of this name
            field = sql.coalesce(field, sql.col("id"))
        return field.cast(each.dataType)

    return found.select(*[value(each).alias(each.name) for each in schema.fields])


class Values(TableSource):
    """Reads values in the tasks of Spark."""

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - of DataSource
        """The reader of this table."""
        from spark_runner.connectors.redis.scan import ValueReader  # noqa: PLC0415 - it imports the client

        return ValueReader(dict(self.table))
