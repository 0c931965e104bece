"""The SQL of MySQL and MariaDB."""

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc.address import MYSQL
from spark_runner.connectors.jdbc.database import Connection
from spark_runner.connectors.jdbc.dialect import DELETE, ROW, Staged, TableColumn
from spark_runner.connectors.jdbc.failures import DatabaseBusy
from spark_runner.connectors.jdbc.names import TableName

_TYPES: dict[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "tinyint",
    ShortType: "smallint",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    StringType: "longtext",
    BinaryType: "longblob",
    DateType: "date",
    TimestampType: "timestamp(6) NULL",
    TimestampNTZType: "datetime(6)",
    MapType: "json",
    StructType: "json",
    ArrayType: "json",
    NullType: "text",
}
_KEY_TYPES: dict[type[DataType], str] = {StringType: "varchar(191)", BinaryType: "varbinary(255)"}

_WHERE = "WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND table_name = ?"
_COLUMNS = (
    f"SELECT column_name, column_type FROM information_schema.columns {_WHERE} ORDER BY ordinal_position"
)
_KEYS = (
    f"SELECT index_name, column_name, sub_part FROM information_schema.statistics {_WHERE} AND non_unique = 0"
)

_TABLES = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND LEFT(table_name, CHAR_LENGTH(?)) = ?"""
_LOCK = "SELECT GET_LOCK(SHA2(CONCAT(COALESCE(NULLIF(?, ''), DATABASE()), '.', ?), 256), ?)"
_LOCK_S = 3600  # that an overwrite waits for others


class MySql:
    """MySQL 8 and MariaDB 10.5, and newer ones."""

    family = MYSQL
    table_options = " CHARACTER SET utf8mb4"  # that of a server may hold a part of Unicode alone

    def columns(self, connection: Connection, table: TableName) -> list[TableColumn]:
        """The columns of a table; empty if it does not exist."""
        found = connection.rows(_COLUMNS, table.schema, table.name)
        return [TableColumn(str(name), str(kind)) for name, kind in found]

    def unique_keys(self, connection: Connection, table: TableName) -> list[frozenset[str]]:
        """The columns of each unique index of whole columns."""
        found, partial = dict[str, set[str]](), set[str]()
        for index, column, part in connection.rows(_KEYS, table.schema, table.name):
            found.setdefault(str(index), set()).add(str(column))
            if part is not None:
                partial.add(str(index))
        return [frozenset(names) for index, names in found.items() if index not in partial]

    def type_of(self, kind: DataType, *, in_key: bool = False) -> str:
        """The type of a column for values of Spark; a text in a key has a length."""
        if isinstance(kind, DecimalType):
            return f"decimal({kind.precision},{kind.scale})"
        known = {**_TYPES, **_KEY_TYPES} if in_key else _TYPES
        found = known.get(type(kind)) or next(
            (name for each, name in known.items() if isinstance(kind, each)), None
        )
        if found is None:
            raise ConnectorError(f"MySQL has no type for {kind.simpleString()}; cast the column")
        return found.removesuffix(" NULL") if in_key else found

    def create_staging(self, staging: TableName, target: TableName, columns: Sequence[str]) -> list[str]:
        """A table of the same columns without their keys."""
        return [
            f"CREATE TABLE {staging} AS SELECT {target.columns(columns)} FROM {target} WHERE false",
            f"ALTER TABLE {staging} ADD {ROW} bigint, ADD {DELETE} boolean",
        ]

    def tables(self, connection: Connection, prefix: TableName) -> list[str]:
        """The names of tables that begin so."""
        return [str(name) for (name,) in connection.rows(_TABLES, prefix.schema, prefix.name, prefix.name)]

    def patience(self, seconds: int | None) -> str:
        """The settings of the connection: of locks of tables and of rows."""
        value = "DEFAULT" if seconds is None else seconds
        return f"SET SESSION lock_wait_timeout = {value}, innodb_lock_wait_timeout = {value}"

    def guard(self) -> list[str]:
        """Nothing: MySQL has no such limit."""
        return []

    def lock(self, connection: Connection, table: TableName) -> None:
        """A lock of this name, which the end of the connection releases: LOCK TABLES would commit."""
        if connection.value(_LOCK, table.schema, table.name, _LOCK_S) != "1":
            raise DatabaseBusy(f"another overwrite of table '{table.shown}' does not end")

    def empty(self, table: TableName, *, at_once: bool) -> str:  # noqa: ARG002 - TRUNCATE would commit
        """The statement that removes all rows; readers see the old ones until the commit."""
        return f"DELETE FROM {table}"

    def freeze(self, staging: TableName) -> list[str]:  # noqa: ARG002 - `count` locks
        """Nothing: the query for the number of rows locks them, and the places between them."""
        return []

    def count(self, staged: Staged) -> str:
        """The number of rows, which it locks against changes as the merge does."""
        return f"SELECT count(*) FROM {staged.staging} LOCK IN SHARE MODE"

    def merge(self, staged: Staged, *, may_repeat: bool) -> list[str]:  # noqa: ARG002 - rows go one by one
        """INSERT, with ON DUPLICATE KEY where there is a key; before it DELETE of marked rows."""
        to, names = staged.target, staged.target.columns(staged.columns)
        insert = f"INSERT INTO {to} ({names}) SELECT {names} FROM"
        if not staged.key:
            return [f"{insert} {staged.staging}"]
        first = to.column(staged.key[0])
        changes = ", ".join(f"{to.column(name)} = VALUES({to.column(name)})" for name in staged.others)
        conflict = f"ON DUPLICATE KEY UPDATE {changes or f'{first} = VALUES({first})'}"
        if not staged.has_deletes:
            return [f"{insert} {staged.staging} ORDER BY {ROW} {conflict}"]
        key = to.columns(staged.key)
        rank = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {ROW} DESC) AS orchestrator_rank"
        last = f"(SELECT s.*, {rank} FROM {staged.staging} s) r WHERE orchestrator_rank = 1"
        same = " AND ".join(f"t.{to.column(name)} = d.{to.column(name)}" for name in staged.key)
        return [
            f"DELETE t FROM {to} t JOIN (SELECT {key} FROM {last} AND {DELETE} = 1) d ON {same}",
            f"{insert} {last} AND COALESCE({DELETE}, 0) = 0 {conflict}",
        ]
