"""Tables of relational databases, as sources."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, BooleanType, DataType, MapType, StringType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL
from spark_runner.connectors.jdbc.database import Database
from spark_runner.connectors.jdbc.names import table_name
from spark_runner.connectors.jdbc.partitions import partitioned
from spark_runner.connectors.rows import column
from spark_runner.protocol.text import did_you_mean


class JdbcSource:
    """Reads by Spark's own JDBC reader, whose filters and columns the database computes."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """All rows, read over several connections where a column or the table can be divided."""
        database = Database(session, options)
        family = database.address.family
        settings = {**database.spark_options(), "fetchsize": str(options["fetch_size"])}
        settings["preferTimestampNTZ"] = "true"
        if options["query"]:
            settings["dbtable"] = f"({options['query']}) q"
        elif family in {POSTGRESQL, MYSQL}:
            settings["dbtable"] = str(table_name(family, str(options["table"])))
        else:
            settings["dbtable"] = str(options["table"])
        with database.errors():
            frame = partitioned(database, session, settings, options)
        return frame if schema is None else declared(frame, schema, options)


def declared(frame: DataFrame, schema: StructType, options: Mapping[str, Any]) -> DataFrame:
    """The declared columns with their types; raises ConnectorError for one that the table lacks."""
    there = {name.lower(): name for name in frame.columns}
    cells = list[Column]()
    for each in schema:
        name = there.get(each.name.lower())
        if name is not None:
            cells.append(_read_as(column(name), frame.schema[name].dataType, each).alias(each.name))
        elif each.name.lower() == str(options["delete_column"]).lower():
            cells.append(sql.lit(False).alias(each.name))
        else:
            raise ConnectorError(
                f"'{options['table'] or 'the query'}' has no column '{each.name}'"
                f"{did_you_mean(each.name, frame.columns)}"
            )
    return frame.select(*cells)


def _read_as(value: Column, kind: DataType, wanted: StructField) -> Column:
    if kind == wanted.dataType:
        return value
    if isinstance(kind, StringType) and isinstance(wanted.dataType, StructType | MapType | ArrayType):
        return sql.from_json(value, wanted.dataType, {"mode": "FAILFAST"})
    if isinstance(wanted.dataType, BooleanType) and isinstance(kind, StringType):
        return value.cast("boolean")
    return value.cast(wanted.dataType)
