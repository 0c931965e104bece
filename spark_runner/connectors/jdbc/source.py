"""Tables of relational databases, as sources."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, BooleanType, DataType, MapType, StringType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError, NothingThere
from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL
from spark_runner.connectors.jdbc.cursor import COLUMN, CursorSource
from spark_runner.connectors.jdbc.database import Database
from spark_runner.connectors.jdbc.failures import DatabaseFailed
from spark_runner.connectors.jdbc.names import table_name
from spark_runner.connectors.jdbc.partitions import partitioned
from spark_runner.connectors.jdbc.postgres import Postgres
from spark_runner.connectors.python_source import stream_by
from spark_runner.connectors.rows import column
from spark_runner.protocol.text import did_you_mean

_NO_TABLE = frozenset({"42P01", "42S02"})
_POINT_IN_TIME = re.compile(r"timestamp(\(\d\))? with time zone")


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
        try:
            with database.errors():
                frame = partitioned(database, session, settings, options)
        except DatabaseFailed as error:
            if error.state in _NO_TABLE and options["table"]:
                raise NothingThere(f"{database.address.shown} has no table '{options['table']}'") from error
            raise
        return frame if schema is None else declared(frame, schema, options)

    def stream(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None
    ) -> DataFrame:
        """The rows with a higher value of `cursor_column` than those before."""
        return self.stream_after(session, options, schema, None, ())

    def stream_from(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None, position: str
    ) -> DataFrame:
        """The stream of the rows above a value of `cursor_column`."""
        return self.stream_after(session, options, schema, position, ())

    def stream_after(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType | None,
        position: str | None,
        reached: Sequence[str],
    ) -> DataFrame:
        """Likewise; its offsets do not go back behind those that its query has reached."""
        database = Database(session, options)
        if database.address.family != POSTGRESQL:
            raise ConnectorError("'cursor_column' reads new rows of PostgreSQL alone")
        if not database.login.is_possible:
            raise ConnectorError("a stream connects to one host, with the parameters of TLS alone in its URL")
        if schema is None:
            raise ConnectorError("a stream needs declared columns")
        table = table_name(POSTGRESQL, str(options["table"]))
        with database.connection() as connection:
            there = {each.name.lower(): each for each in Postgres().columns(connection, table)}
        if not there:
            raise ConnectorError(f"{database.address.shown} has no table '{table.shown}'")
        for name in (str(options["cursor_column"]), *schema.fieldNames()):
            if name.lower() not in there:
                hint = did_you_mean(name, [each.name for each in there.values()])
                raise ConnectorError(f"table '{table.shown}' has no column '{name}'{hint}")
        cursor = there[str(options["cursor_column"]).lower()]
        if options["cursor_delay"] and not _POINT_IN_TIME.fullmatch(cursor.type):
            # A clock without a zone may be ahead or behind by hours, of which the server knows nothing.
            raise ConnectorError(
                f"'cursor_delay' needs a column of type 'timestamp with time zone': '{cursor.name}' of table"
                f" '{table.shown}' is '{cursor.type}'; choose another 'cursor_column', or leave out the delay"
            )
        names = [there[each.name.lower()] for each in schema]
        made: dict[str, Any] = {
            **options,
            "cursor_column": cursor.name,
            "columns": [each.name for each in names],
            "binary": [each.name for each in names if each.type == "bytea"],
            "start": position,
            "reached": list(reached),
        }
        rows = stream_by(CursorSource, session, made, StructType().add(COLUMN, StringType()))
        given = StructType(
            [StructField(each.name, own.dataType) for each, own in zip(names, schema, strict=True)]
        )
        parsed = rows.select(sql.from_json(COLUMN, given, {"mode": "FAILFAST"}).alias(COLUMN))
        return parsed.select(
            *[sql.col(COLUMN)[each.name].alias(own.name) for each, own in zip(names, schema, strict=True)]
        )


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
        found: Any = wanted.dataType  # it takes a map, too
        return sql.from_json(value, found, {"mode": "FAILFAST"})
    if isinstance(wanted.dataType, BooleanType) and isinstance(kind, StringType):
        return value.cast("boolean")
    return value.cast(wanted.dataType)
