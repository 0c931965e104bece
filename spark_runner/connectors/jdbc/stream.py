"""Streams of the new rows of a table: what the driver checks, and the values of the texts that tasks read."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc.address import MYSQL, POSTGRESQL
from spark_runner.connectors.jdbc.cursor import CursorSource
from spark_runner.connectors.jdbc.cursor_mysql import CURSOR_TYPES, ONE_BIT, PARAMETERS, position_of
from spark_runner.connectors.jdbc.database import Database
from spark_runner.connectors.jdbc.dialect import Dialect, TableColumn
from spark_runner.connectors.jdbc.mysql import MySql
from spark_runner.connectors.jdbc.names import table_name
from spark_runner.connectors.jdbc.postgres import Postgres
from spark_runner.connectors.jdbc.values import INTEGERS, base_type, read_as
from spark_runner.connectors.jdbc.wire import Login
from spark_runner.connectors.python_source import stream_by
from spark_runner.protocol.text import did_you_mean

_SHAPES = ("geometry", "point", "linestring", "polygon", "geometrycollection", "geomcollection")
_BINARY = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector", *_SHAPES})
_BINARY |= {"bit", *(f"multi{name}" for name in _SHAPES)}
_SPARK = {"date": "date", "year": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp"}
_SPARK |= {"float": "float", "double": "double"} | dict.fromkeys(INTEGERS, "decimal(20)")
_BOOLEAN = frozenset({"tinyint(1)", ONE_BIT})
_DECIMAL = re.compile(r"decimal\(([12]?\d|3[0-8]),\d+\)")  # that Spark has, too
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


def new_rows(
    session: SparkSession,
    options: Mapping[str, Any],
    schema: StructType | None,
    position: str | None,
    reached: Sequence[str],
) -> DataFrame:
    """The rows above a value of `cursor_column`, and later those above the highest one before."""
    database = Database(session, options)
    family = _FAMILIES.get(database.address.family)
    if family is None:
        raise ConnectorError("'cursor_column' reads new rows of PostgreSQL, MySQL and MariaDB alone")
    at = database.address
    if not at.host or not at.parameters.keys() <= family.parameters:
        raise ConnectorError(
            "a stream connects to one host, and option 'url' has no other parameters than"
            f" {', '.join(sorted(family.parameters))}"
        )
    if schema is None:
        raise ConnectorError("a stream needs declared columns")
    cursor, columns = _columns(database, family.dialect, options, schema)
    if not family.can_order(cursor.type):
        raise ConnectorError(
            f"'cursor_column' cannot be '{cursor.name}' of type '{cursor.type}'; choose a column of numbers,"
            " times or texts"
        )
    if options["cursor_delay"] and not re.fullmatch(family.point_in_time, cursor.type):
        # A clock without a zone may be ahead or behind by hours, of which the server knows nothing.
        raise ConnectorError(
            f"'cursor_delay' needs a column of type '{family.clock}': '{cursor.name}' of table"
            f" '{options['table']}' is '{cursor.type}'; choose another 'cursor_column', or leave out the"
            " delay"
        )
    is_whole = base_type(cursor.type) in INTEGERS
    if position is not None:
        try:
            position = family.position(cursor.type, position.strip())
        except ConnectorError as error:
            raise ConnectorError(
                f"the position '{position}' is no value of column '{cursor.name}' of type '{cursor.type}':"
                f" {error}"
            ) from error
    made: dict[str, Any] = {
        **options,
        "cursor_column": cursor.name,
        "cursor_type": cursor.type,
        "is_whole": is_whole,
        "columns": {each.name: each.type for each in columns},
        "start": position,
        "reached": list(reached),
    }
    rows = stream_by(CursorSource, session, made, family.texts(columns))
    return family.values(rows, columns, schema)


def _columns(
    database: Database, dialect: Dialect, options: Mapping[str, Any], schema: StructType
) -> tuple[TableColumn, list[TableColumn]]:
    """The cursor and the declared columns, as the table has them; raises ConnectorError."""
    table = table_name(dialect.family, str(options["table"]))
    with database.connection() as connection:
        there = {each.name.lower(): each for each in dialect.columns(connection, table)}
    if not there:
        raise ConnectorError(f"{database.address.shown} has no table '{table.shown}'")
    for name in (str(options["cursor_column"]), *schema.fieldNames()):
        if name.lower() not in there:
            hint = did_you_mean(name, [each.name for each in there.values()])
            raise ConnectorError(f"table '{table.shown}' has no column '{name}'{hint}")
    return there[str(options["cursor_column"]).lower()], [there[name.lower()] for name in schema.fieldNames()]


class _Family(Protocol):
    """What a family of databases has of its own."""

    dialect: Dialect
    parameters: frozenset[str]  # of a URL, that tasks have without a JDBC driver
    clock: str  # the type of its points in time
    point_in_time: str  # likewise, as a regular expression

    def position(self, kind: str, text: str) -> str:
        """The position that a user gives, as a value of this type; raises ConnectorError with the reason."""

    def can_order(self, kind: str) -> bool:
        """Whether tasks find the highest value of a column of this type."""

    def texts(self, columns: Sequence[TableColumn]) -> StructType:
        """What the tasks read of these columns."""

    def values(self, rows: DataFrame, columns: Sequence[TableColumn], schema: StructType) -> DataFrame:
        """The declared columns."""


class _Postgres:
    """A row is one JSON text."""

    dialect: Dialect = Postgres()
    parameters, clock = Login.KNOWN, "timestamp with time zone"
    point_in_time = r"timestamp(\(\d\))? with time zone"

    def position(self, kind: str, text: str) -> str:
        """The same text; the server checks what is no whole number."""
        if base_type(kind) in INTEGERS and not _WHOLE.fullmatch(text):
            raise ConnectorError("it is no whole number")
        return text

    def can_order(self, kind: str) -> bool:  # noqa: ARG002 - of _Family
        """Always: the server knows its types."""
        return True

    def texts(self, _: Sequence[TableColumn]) -> StructType:
        """One column."""
        return StructType().add("row", StringType())

    def values(self, rows: DataFrame, columns: Sequence[TableColumn], schema: StructType) -> DataFrame:
        """The fields of the JSON."""
        both = list(zip(columns, schema, strict=True))
        given = StructType([StructField(each.name, own.dataType) for each, own in both])
        parsed = rows.select(sql.from_json("row", given, {"mode": "FAILFAST"}).alias("row"))
        return parsed.select(*[sql.col("row")[each.name].alias(own.name) for each, own in both])


class _MySql:
    """A row is a text, or bytes, for each column."""

    dialect: Dialect = MySql()
    parameters, clock, point_in_time = PARAMETERS, "timestamp", r"timestamp(\(\d\))?"

    def position(self, kind: str, text: str) -> str:
        """The text that the database has for it: a server takes any text, and may find no row above it."""
        return position_of(kind, text)

    def can_order(self, kind: str) -> bool:
        """Whether a text has the whole value."""
        return base_type(kind) in CURSOR_TYPES

    def texts(self, columns: Sequence[TableColumn]) -> StructType:
        """The columns, by their numbers."""
        kinds = [BinaryType() if _is_binary(each.type) else StringType() for each in columns]
        return StructType([StructField(f"c{number}", kind) for number, kind in enumerate(kinds)])

    def values(self, rows: DataFrame, columns: Sequence[TableColumn], schema: StructType) -> DataFrame:
        """The values of the texts, by way of the types that a read by the JDBC driver has."""
        cells = [
            _cell(name, each.type, own).alias(own.name)
            for name, each, own in zip(rows.columns, columns, schema, strict=True)
        ]
        return rows.select(*cells)


def _is_binary(kind: str) -> bool:
    return base_type(kind) in _BINARY and kind != ONE_BIT


def _cell(name: str, kind: str, wanted: StructField) -> Column:
    cell, base = sql.col(name), base_type(kind)
    if _is_binary(kind):
        return read_as(cell, BinaryType(), wanted)
    decimal = _DECIMAL.match(kind)
    target = decimal[0] if decimal else _SPARK.get(base, "")
    if kind in _BOOLEAN:
        cell, target = cell.cast("int"), "boolean"
    if not target:
        return read_as(cell, StringType(), wanted)
    # A date with zeros is NULL.
    return read_as(cell.try_cast(target), DataType.fromDDL(target), wanted)


_FAMILIES: Mapping[str, _Family] = {POSTGRESQL: _Postgres(), MYSQL: _MySql()}
