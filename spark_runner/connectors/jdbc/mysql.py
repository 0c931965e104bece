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
    IntegralType,
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
from spark_runner.connectors.jdbc.dialect import (
    DELETE,
    GIVEN,
    GIVEN_TABLE,
    REASON,
    ROW,
    Staged,
    TableColumn,
)
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

_UNSAFE = """
SELECT t.engine FROM information_schema.tables t JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND t.table_name = ? AND e.transactions <> 'YES'"""
_TABLES = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND LEFT(table_name, CHAR_LENGTH(?)) = ?"""
_LOCK = "SELECT GET_LOCK(SHA2(CONCAT(COALESCE(NULLIF(?, ''), DATABASE()), '.', ?), 256), ?)"
_ENGINE = " ENGINE=InnoDB"  # that of a server may have no transactions
_LOCK_S = 3600  # that an overwrite waits for others


class MySql:
    """MySQL 8 and MariaDB 10.5, and newer ones."""

    family = MYSQL
    table_options = f"{_ENGINE} CHARACTER SET utf8mb4"  # that of a server may hold a part of Unicode alone

    def columns(self, connection: Connection, table: TableName) -> list[TableColumn]:
        """The columns of a table; empty if it does not exist."""
        found = connection.rows(_COLUMNS, table.schema, table.name)
        return [TableColumn(str(name), str(kind)) for name, kind in found]

    def check(self, connection: Connection, table: TableName) -> None:
        """Raise ConnectorError for an engine that keeps rows of a transaction which is rolled back."""
        if engine := connection.value(_UNSAFE, table.schema, table.name):
            raise ConnectorError(
                f"table '{table.shown}' has the engine {engine}, which has no transactions, so that a write"
                f" which fails would leave some of its rows there: ALTER TABLE {table}{_ENGINE}"
            )

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
        """A table of the same columns without keys and NOT NULL: rows that delete may have NULL."""
        nothing = f"(SELECT 1 AS {ROW}) one LEFT JOIN {target} ON false"  # a row of it would be NULL
        return [
            f"CREATE TABLE {staging}{_ENGINE} AS SELECT {target.columns(columns)} FROM {nothing} WHERE false",
            f"ALTER TABLE {staging} ADD {ROW} bigint, ADD {DELETE} boolean",
        ]

    def create_sieve(
        self, staging: TableName, target: TableName, columns: Sequence[tuple[str, DataType]]
    ) -> list[str]:
        """A further table, whose columns take every value: the merge puts its rows into the other."""
        cells = [f"{target.column(name)} {self._any_of(kind)}" for name, kind in columns]
        own = f"{ROW} bigint, {DELETE} boolean, {GIVEN} longtext, {REASON} longtext, KEY ({ROW})"
        return [
            *self.create_staging(staging, target, [name for name, _ in columns]),
            f"ALTER TABLE {staging} ADD KEY ({ROW})",
            f"CREATE TABLE {self.given(staging)} ({', '.join(cells)}, {own}){self.table_options}",
        ]

    def given(self, staging: TableName) -> TableName:
        """The further table."""
        return staging.beside(staging.name + GIVEN_TABLE)

    def holds_unicode(self, connection: Connection) -> bool:  # noqa: ARG002 - of Dialect
        """They have the set of characters of `table_options`."""
        return True

    def begin_sieve(self) -> list[str]:
        """Keep the time zone of the connection, which a merge changes; again, it may be the changed one."""
        return ["SET @orchestrator_zone = COALESCE(@orchestrator_zone, @@time_zone)"]

    def _any_of(self, kind: DataType) -> str:
        """The type of a column for each value of `staging.loose`."""
        match kind:
            case BooleanType() | IntegralType():
                return "bigint"
            case DecimalType() | BinaryType():
                return self.type_of(kind)
        return "longtext"

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
        return f"SELECT count(*) FROM {staged.given or staged.staging} LOCK IN SHARE MODE"

    def merge(self, staged: Staged, *, may_repeat: bool) -> list[str]:  # noqa: ARG002 - rows go one by one
        """INSERT, with ON DUPLICATE KEY where there is a key; before it DELETE of marked rows."""
        return [*_typed(staged), *self._moved(staged)]

    def _moved(self, staged: Staged) -> list[str]:
        to, names = staged.target, staged.target.columns(staged.columns)
        insert, rows = f"INSERT INTO {to} ({names}) SELECT {names} FROM", staged.rows
        if not staged.key:
            return [f"{insert} {rows}"]
        first = to.column(staged.key[0])
        changes = ", ".join(f"{to.column(name)} = VALUES({to.column(name)})" for name in staged.others)
        conflict = f"ON DUPLICATE KEY UPDATE {changes or f'{first} = VALUES({first})'}"
        if not staged.has_deletes:
            return [f"{insert} {rows} ORDER BY {ROW} {conflict}"]
        key = to.columns(staged.key)
        rank = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {ROW} DESC) AS orchestrator_rank"
        last = f"(SELECT {staged.staging}.*, {rank} FROM {rows}) r WHERE orchestrator_rank = 1"
        same = " AND ".join(f"t.{to.column(name)} = d.{to.column(name)}" for name in staged.key)
        return [
            f"DELETE t FROM {to} t JOIN (SELECT {key} FROM {last} AND {DELETE} = 1) d ON {same}",
            f"{insert} {last} AND COALESCE({DELETE}, 0) = 0 {conflict}",
        ]


def _typed(staged: Staged) -> list[str]:
    """Statements that put rows which take part in a sieve into the columns of their staging table.

    Texts of times are in UTC. The columns of the target that have the present time have it in their own zone.
    """
    if staged.given is None:
        return []
    names = f"{staged.target.columns(staged.columns)}, {ROW}, {DELETE}"
    return [
        "SET time_zone = '+00:00'",
        f"INSERT INTO {staged.staging} ({names}) SELECT {names} FROM {staged.given} WHERE {staged.condition}",
        "SET time_zone = @orchestrator_zone",
    ]
