"""The table that a write goes into, compared with the rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import BooleanType, StructField, StructType

from spark_runner.connectors.errors import ConnectorError, UnlikeColumns
from spark_runner.connectors.jdbc.database import Connection
from spark_runner.connectors.jdbc.dialect import Dialect, TableColumn, create_table
from spark_runner.connectors.jdbc.names import TableName, table_name


@dataclass(frozen=True)
class Written:
    """A column of the rows, and the column of the table that takes it."""

    given: StructField
    name: str
    type: str


@dataclass(frozen=True)
class Target:
    """The table, its columns that are written, and what has to change first."""

    table: TableName
    columns: Sequence[Written]
    key: Sequence[str]  # as the database writes them
    delete: str  # the column of the rows that marks deletes; empty without one
    changes: Sequence[str]  # statements that create the table or add columns

    @property
    def names(self) -> list[str]:
        """The names of the columns in the database."""
        return [column.name for column in self.columns]


def find_target(
    connection: Connection,
    dialect: Dialect,
    options: Mapping[str, Any],
    schema: StructType,
    key: Sequence[str],
) -> Target:
    """The table of the options; raises ConnectorError if these rows cannot be written there."""
    table = table_name(dialect.family, str(options["table"]))
    if not table.name:
        raise ConnectorError("the rows of a 'query' cannot be written; give option 'table'")
    delete = _delete_column(options, schema, key)
    rows = StructType([each for each in schema if each.name != delete])
    found = dialect.columns(connection, table)
    if not found:
        statement = create_table(dialect, table, rows, key)
        if not options["create"]:
            raise ConnectorError(
                f"{connection.shown} has no table '{table.shown}'; create it, or set option 'create':"
                f" {statement}"
            )
        types = [TableColumn(each.name, dialect.type_of(each.dataType)) for each in rows]
        return Target(table, _matched(rows, types), tuple(key), delete, [statement])
    dialect.check(connection, table)
    missing = [each for each in rows if _match(each.name, found) is None]
    changes = list[str]()
    if missing and options["new_columns"] == "fail":
        names = ", ".join(f"{each.name} {dialect.type_of(each.dataType)}" for each in missing)
        raise UnlikeColumns(
            f"table '{table.shown}' lacks {names}; add them, or set option 'new_columns' to 'add' or 'ignore'"
        )
    if missing and options["new_columns"] == "add":
        for each in missing:
            kind = dialect.type_of(each.dataType)
            changes.append(f"ALTER TABLE {table} ADD COLUMN {table.column(each.name)} {kind}")
            found.append(TableColumn(each.name, kind))
    columns = _matched(rows, found)
    if not columns:
        raise UnlikeColumns(f"table '{table.shown}' has none of the columns {', '.join(rows.fieldNames())}")
    return Target(table, columns, _key(connection, dialect, table, columns, key), delete, changes)


def _delete_column(options: Mapping[str, Any], schema: StructType, key: Sequence[str]) -> str:
    name = str(options["delete_column"])
    if not name:
        return ""
    if not key:
        raise ConnectorError(
            "option 'delete_column' needs a PRIMARY KEY of the table: its rows are deleted by it"
        )
    found = next((each for each in schema if each.name.lower() == name.lower()), None)
    if found is None:
        raise UnlikeColumns(f"the rows have no column '{name}', which option 'delete_column' names")
    if not isinstance(found.dataType, BooleanType):
        raise UnlikeColumns(
            f"column '{name}' marks deletes: it is BOOLEAN, not {found.dataType.simpleString()}"
        )
    return found.name


def _matched(rows: StructType, columns: Sequence[TableColumn]) -> list[Written]:
    return [
        Written(each, found.name, found.type)
        for each in rows
        if (found := _match(each.name, columns)) is not None
    ]


def _match(name: str, columns: Sequence[TableColumn]) -> TableColumn | None:
    """The column of this name; Spark ignores case, so another case matches if it is the only one."""
    exact = [each for each in columns if each.name == name]
    alike = exact or [each for each in columns if each.name.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _key(
    connection: Connection, dialect: Dialect, table: TableName, columns: Sequence[Written], key: Sequence[str]
) -> list[str]:
    """The key as the database writes it; raises ConnectorError unless an index guards it."""
    if not key:
        return []
    names = {column.given.name.lower(): column.name for column in columns}
    lacking = [name for name in key if name.lower() not in names]
    if lacking:
        raise UnlikeColumns(f"table '{table.shown}' lacks the column {lacking[0]} of the PRIMARY KEY")
    found = [names[name.lower()] for name in key]
    if frozenset(found) not in dialect.unique_keys(connection, table):
        raise ConnectorError(
            f"table '{table.shown}' has no unique index on ({', '.join(found)}), by which rows replace each"
            f" other: ALTER TABLE {table} ADD PRIMARY KEY ({table.columns(found)})"
        )
    return found
