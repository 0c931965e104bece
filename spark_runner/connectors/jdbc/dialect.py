"""What a database needs its own SQL for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql.types import DataType, StructType

from spark_runner.connectors.jdbc.database import Connection
from spark_runner.connectors.jdbc.names import TableName

ROW = "orchestrator_row"  # the number of a row in a staging table: the last row of a key wins
TASK = "orchestrator_task"  # the task that wrote it: rows of tasks that were lost do not count
DELETE = "orchestrator_delete"  # whether the row deletes that of its key
GIVEN = "orchestrator_given"  # the row as the query gave it, as JSON; only where rows may be rejected
REASON = "orchestrator_reason"  # likewise, why the row is rejected
GIVEN_TABLE = "_given"  # behind the name of a staging table: that of a further one, if there is one
OWN_COLUMNS = (ROW, TASK, DELETE, GIVEN, REASON)


@dataclass(frozen=True)
class TableColumn:
    """A column of a table of the database."""

    name: str
    type: str  # as the database writes it


@dataclass(frozen=True)
class Staged:
    """The rows of a staging table that count, and where they go."""

    staging: TableName
    target: TableName
    columns: Sequence[str]
    key: Sequence[str]  # rows with an equal key replace each other; empty without one
    tasks: Sequence[int]  # that wrote the rows; empty: all rows count
    has_deletes: bool = False
    given: TableName | None = None  # where rows may be rejected: the table with all of them
    between: tuple[int, int] | None = None  # likewise: the numbers of the rows that a statement moves

    @property
    def condition(self) -> str:
        """Which rows count, and are moved, for WHERE; further conditions may follow."""
        parts = [f"{TASK} IN ({', '.join(map(str, self.tasks))})"] if self.tasks else []
        parts += [f"{ROW} BETWEEN {self.between[0]} AND {self.between[1]}"] if self.between else []
        return " AND ".join(parts) or "1 = 1"

    @property
    def rows(self) -> str:
        """The staged rows that are moved, for FROM; further conditions may follow."""
        return f"{self.staging} WHERE {self.condition}"

    @property
    def others(self) -> list[str]:
        """The columns that are no part of the key."""
        return [name for name in self.columns if name not in self.key]


class Dialect(Protocol):
    """The SQL of one family of databases."""

    family: str
    table_options: str  # behind the columns of CREATE TABLE

    def columns(self, connection: Connection, table: TableName) -> list[TableColumn]:
        """The columns of a table; empty if it does not exist."""

    def check(self, connection: Connection, table: TableName) -> None:
        """Raise ConnectorError if a transaction does not bind the changes of a table."""

    def unique_keys(self, connection: Connection, table: TableName) -> list[frozenset[str]]:
        """The columns of each unique index."""

    def type_of(self, kind: DataType, *, in_key: bool = False) -> str:
        """The type of a column for values of Spark; raises ConnectorError without one."""

    def create_staging(self, staging: TableName, target: TableName, columns: Sequence[str]) -> list[str]:
        """Statements that make a staging table for columns of a target."""

    def create_sieve(
        self, staging: TableName, target: TableName, columns: Sequence[tuple[str, DataType]]
    ) -> list[str]:
        """Statements that make the tables for a write whose rows may be rejected."""

    def given(self, staging: TableName) -> TableName:
        """The one of these tables that has all rows, with `GIVEN` and `REASON`."""

    def holds_unicode(self, connection: Connection) -> bool:
        """Whether texts in the tables of a sieve may have all characters."""

    def begin_sieve(self) -> list[str]:
        """Statements before the first of many merges in one transaction."""

    def tables(self, connection: Connection, prefix: TableName) -> list[str]:
        """The names of the tables that begin with that of `prefix`, in its schema."""

    def patience(self, seconds: int | None) -> str:
        """The statement that limits how long this transaction waits for locks; None: as the server has it."""

    def guard(self) -> list[str]:
        """Statements of a transaction that holds locks: the server ends it if its driver is suspended."""

    def lock(self, connection: Connection, table: TableName) -> None:
        """Let no other overwrite change a table until the commit."""

    def empty(self, table: TableName, *, at_once: bool) -> str:
        """The statement that removes all rows."""

    def freeze(self, staging: TableName) -> list[str]:
        """Statements that let no other transaction change a staging table until the commit."""

    def count(self, staged: Staged) -> str:
        """The query for the number of staged rows that count."""

    def merge(self, staged: Staged, *, may_repeat: bool) -> list[str]:
        """Statements that move staged rows into their target; `may_repeat`: a key may occur twice."""


def create_table(dialect: Dialect, table: TableName, columns: StructType, key: Sequence[str]) -> str:
    """The statement that creates a table for rows of Spark."""
    wanted = {name.lower() for name in key}
    lines = [
        f"{table.column(each.name)} {dialect.type_of(each.dataType, in_key=each.name.lower() in wanted)}"
        + ("" if each.nullable and each.name.lower() not in wanted else " NOT NULL")
        for each in columns
    ]
    if key:
        lines.append(f"PRIMARY KEY ({table.columns(key)})")
    return f"CREATE TABLE {table} ({', '.join(lines)}){dialect.table_options}"
