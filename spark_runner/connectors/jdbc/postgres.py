"""The SQL of PostgreSQL."""

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
    VariantType,
)

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc.address import POSTGRESQL
from spark_runner.connectors.jdbc.database import Connection
from spark_runner.connectors.jdbc.dialect import (
    DELETE,
    GIVEN,
    REASON,
    ROW,
    TASK,
    Staged,
    TableColumn,
)
from spark_runner.connectors.jdbc.names import TableName

TASK_SETTING = "orchestrator.task"  # of a connection that fills a staging table

_TYPES: dict[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    StringType: "text",
    BinaryType: "bytea",
    DateType: "date",
    TimestampType: "timestamp with time zone",
    TimestampNTZType: "timestamp without time zone",
    MapType: "jsonb",
    StructType: "jsonb",
    VariantType: "jsonb",
    NullType: "text",
}

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a
WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

_KEYS = """
SELECT i.indexrelid::text, a.attname FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[:i.indnkeyatts - 1])
WHERE i.indrelid = to_regclass(?) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
AND i.indexprs IS NULL AND i.indimmediate"""

_TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND starts_with(c.relname, ?)
AND CASE ? WHEN '' THEN pg_table_is_visible(c.oid) ELSE n.nspname = ? END"""

_FREEZE_S = 10  # for a task that was lost, and still holds a staging table
_IDLE_S = 60  # of a driver between two statements of a transaction


class Postgres:
    """PostgreSQL 12 and newer."""

    family = POSTGRESQL
    table_options = ""

    def columns(self, connection: Connection, table: TableName) -> list[TableColumn]:
        """The columns of a table; empty if it does not exist."""
        return [TableColumn(str(name), str(kind)) for name, kind in connection.rows(_COLUMNS, str(table))]

    def check(self, connection: Connection, table: TableName) -> None:
        """Nothing: all tables have transactions."""

    def unique_keys(self, connection: Connection, table: TableName) -> list[frozenset[str]]:
        """The columns of each unique index."""
        found = dict[str, set[str]]()
        for index, column in connection.rows(_KEYS, str(table)):
            found.setdefault(str(index), set()).add(str(column))
        return [frozenset(names) for names in found.values()]

    def type_of(self, kind: DataType, *, in_key: bool = False) -> str:  # noqa: ARG002 - of Dialect
        """The type of a column for values of Spark."""
        if isinstance(kind, ArrayType):
            element = self.type_of(kind.elementType)
            return element if element == "jsonb" else f"{element}[]"  # one JSON text, as COPY gets it
        if isinstance(kind, DecimalType):
            return f"numeric({kind.precision},{kind.scale})"
        found = _TYPES.get(type(kind)) or next(
            (name for each, name in _TYPES.items() if isinstance(kind, each)), None
        )
        if found is None:
            raise ConnectorError(f"PostgreSQL has no type for {kind.simpleString()}; cast the column")
        return found

    def create_staging(self, staging: TableName, target: TableName, columns: Sequence[str]) -> list[str]:
        """A table without a log of its own: a crash of the server empties it, which `count` finds."""
        # Outside of a transaction that set it, the setting may be empty.
        task = f"{TASK} bigint DEFAULT nullif(current_setting('{TASK_SETTING}', true), '')::bigint"
        return [
            f"CREATE UNLOGGED TABLE {staging} AS SELECT {target.columns(columns)} FROM {target} WITH NO DATA",
            f"ALTER TABLE {staging} ADD {ROW} bigint, ADD {DELETE} boolean, ADD {task}",
            f"ALTER TABLE {staging} SET (autovacuum_enabled = false)",
        ]

    def create_sieve(
        self, staging: TableName, target: TableName, columns: Sequence[tuple[str, DataType]]
    ) -> list[str]:
        """The same table, whose rows are found by their numbers: COPY has set aside what does not fit."""
        return [
            *self.create_staging(staging, target, [name for name, _ in columns]),
            f"ALTER TABLE {staging} ADD {GIVEN} text, ADD {REASON} text",
            f"CREATE INDEX ON {staging} ({ROW})",
        ]

    def given(self, staging: TableName) -> TableName:
        """The staging table itself."""
        return staging

    def holds_unicode(self, connection: Connection) -> bool:
        """All texts of a database have one encoding; SQL_ASCII keeps any bytes."""
        return connection.value("SHOW server_encoding") in {"UTF8", "SQL_ASCII"}

    def begin_sieve(self) -> list[str]:
        """Nothing."""
        return []

    def tables(self, connection: Connection, prefix: TableName) -> list[str]:
        """The names of tables that begin so."""
        found = connection.rows(_TABLES, prefix.name, prefix.schema, prefix.schema)
        return [str(name) for (name,) in found]

    def patience(self, seconds: int | None) -> str:
        """The setting of a transaction."""
        return "SET LOCAL lock_timeout TO " + ("DEFAULT" if seconds is None else f"'{seconds}s'")

    def guard(self) -> list[str]:
        """Likewise."""
        return [f"SET LOCAL idle_in_transaction_session_timeout TO '{_IDLE_S}s'"]

    def lock(self, connection: Connection, table: TableName) -> None:
        """DELETE would leave the rows that another overwrite commits meanwhile; readers do not wait."""
        connection.run(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")

    def empty(self, table: TableName, *, at_once: bool) -> str:
        """DELETE leaves the old rows to readers until the commit; TRUNCATE lets them wait."""
        return f"TRUNCATE TABLE {table}" if at_once else f"DELETE FROM {table}"

    def freeze(self, staging: TableName) -> list[str]:
        """A lock: each statement sees what others have committed before it."""
        return [self.patience(_FREEZE_S), f"LOCK TABLE {staging} IN SHARE MODE", self.patience(None)]

    def count(self, staged: Staged) -> str:
        """The number of rows of the tasks that count."""
        return f"SELECT count(*) FROM {staged.rows}"

    def merge(self, staged: Staged, *, may_repeat: bool) -> list[str]:
        """INSERT, with ON CONFLICT where there is a key; before it DELETE of marked rows."""
        to, names = staged.target, staged.target.columns(staged.columns)
        rows = staged.rows
        if not staged.key:
            return [f"INSERT INTO {to} ({names}) SELECT {names} FROM {rows}"]
        key = to.columns(staged.key)
        if may_repeat or staged.has_deletes:
            rows = f"(SELECT DISTINCT ON ({key}) * FROM {rows} ORDER BY {key}, {ROW} DESC) s WHERE true"
        changes = ", ".join(f"{to.column(name)} = EXCLUDED.{to.column(name)}" for name in staged.others)
        conflict = f"ON CONFLICT ({key}) DO " + (f"UPDATE SET {changes}" if changes else "NOTHING")
        insert = f"INSERT INTO {to} ({names}) SELECT {names} FROM {rows}"
        if not staged.has_deletes:
            return [f"{insert} {conflict}"]
        same = " AND ".join(f"t.{to.column(name)} = d.{to.column(name)}" for name in staged.key)
        return [
            *([] if staged.between else [f"ANALYZE {staged.staging}"]),
            f"DELETE FROM {to} t USING (SELECT {key} FROM {rows} AND {DELETE}) d WHERE {same}",
            f"{insert} AND {DELETE} IS NOT TRUE {conflict}",
        ]
