"""Tables of relational databases, as sources."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.errors import ConnectorError, NothingThere
from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL
from spark_runner.connectors.jdbc.database import Database
from spark_runner.connectors.jdbc.failures import DatabaseFailed
from spark_runner.connectors.jdbc.names import table_name
from spark_runner.connectors.jdbc.partitions import partitioned
from spark_runner.connectors.jdbc.stream import new_rows
from spark_runner.connectors.jdbc.values import read_as
from spark_runner.connectors.rows import column
from spark_runner.connectors.session_settings import changed
from spark_runner.protocol.text import did_you_mean

_UNPADDED = {"spark.sql.readSideCharPadding": "false"}
"""CHAR and ENUM are as the database gives them: Spark would fill each value up to the longest one."""

_NO_TABLE = frozenset({"42P01", "42S02"})


class JdbcSource:
    """Reads by Spark's own JDBC reader, whose filters and columns the database computes."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """All rows, read over several connections where a column or the table can be divided."""
        database = Database(session, options)
        family = database.address.family
        settings = {**database.spark_options(), "fetchsize": str(options["fetch_size"])}
        settings["preferTimestampNTZ"] = "true"
        if family == MYSQL and "useServerPrepStmts" not in database.address.parameters:
            settings["useServerPrepStmts"] = "true"  # values come as bytes: the text of a FLOAT has 6 digits
        if options["query"]:
            settings["dbtable"] = f"({options['query']}) q"
        elif family in {POSTGRESQL, MYSQL}:
            settings["dbtable"] = str(table_name(family, str(options["table"])))
        else:
            settings["dbtable"] = str(options["table"])
        try:
            with database.errors(), changed(session, _UNPADDED):
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

    def resumes(self, options: Mapping[str, Any], position: str | None) -> bool:  # noqa: ARG002 - of ResumingSource
        """Always."""
        return True

    def stream_after(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType | None,
        position: str | None,
        reached: Sequence[str] | None,
    ) -> DataFrame:
        """Likewise; its offsets do not go back behind those that its query has reached."""
        return new_rows(session, options, schema, position, reached or ())


def declared(frame: DataFrame, schema: StructType, options: Mapping[str, Any]) -> DataFrame:
    """The declared columns with their types; raises ConnectorError for one that the table lacks."""
    there = {name.lower(): name for name in frame.columns}
    cells = list[Column]()
    for each in schema:
        name = there.get(each.name.lower())
        if name is not None:
            cells.append(read_as(column(name), frame.schema[name].dataType, each).alias(each.name))
        elif each.name.lower() == str(options["delete_column"]).lower():
            cells.append(sql.lit(False).alias(each.name))
        else:
            raise ConnectorError(
                f"'{options['table'] or 'the query'}' has no column '{each.name}'"
                f"{did_you_mean(each.name, frame.columns)}"
            )
    return frame.select(*cells)
