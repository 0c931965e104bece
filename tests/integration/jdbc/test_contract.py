"""PostgreSQL and MariaDB pass the suite of connectors."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from queues.embedded.ports import free_ports
from tests.contract.kit import COLUMNS, Can
from tests.contract.suite import *  # noqa: F403 - the tests of the suite
from tests.servers.databases import DatabaseServer

OWN = {
    "postgresql": "id bigint {key}, name text, amount double precision",
    "mariadb": "id bigint {key}, name text, amount double",
}


class DatabaseKit:
    """Tables with a primary key; PostgreSQL also streams new rows by it."""

    def __init__(self, database: DatabaseServer) -> None:
        self._database, self._made = database, 0
        self.can = Can.READ | Can.APPEND | Can.UPSERT | Can.DELETE | Can.PROBE
        if database.kind == "postgresql":
            self.can |= Can.STREAM

    def create(self) -> str:
        self._made += 1
        columns = OWN[self._database.kind].format(key="PRIMARY KEY")
        self._database.run(f"CREATE TABLE t{self._made} ({columns})")
        return f"t{self._made}"

    def table(self, name: str, target: str, *, key: bool = False, deletes: bool = False) -> str:
        return _table(self._database, name, target, key=key, deletes=deletes)

    def put(self, target: str, rows: Sequence[tuple[Any, ...]]) -> None:
        values = ", ".join("(" + ", ".join(map(self._literal, row)) + ")" for row in rows)
        self._database.run(f"INSERT INTO {target} VALUES {values}")

    def rows(self, target: str) -> list[tuple[Any, ...]]:
        made = "json_build_array" if self._database.kind == "postgresql" else "json_array"
        found = self._database.ask(
            self._database.database,
            f"SELECT {made}(id, hex, amount) FROM ({_hex(self._database.kind, target)}) r",
        )
        cells = [json.loads(line) for line in found.splitlines()]
        return [
            (number, None if name is None else bytes.fromhex(name).decode(), amount)
            for number, name, amount in cells
        ]

    def unreachable(self, name: str) -> tuple[str, str]:
        (port,) = free_ports("127.0.0.1", 1)
        away = replace(self._database, port=port)
        return _table(away, name, "any"), f"at 127.0.0.1:{port} does not answer"

    def missing(self, name: str) -> tuple[str, str]:
        return self.table(name, "missing"), "has no table 'missing'"

    def _literal(self, value: Any) -> str:
        if not isinstance(value, str):
            return "NULL" if value is None else str(value)
        text, is_postgres = value.encode().hex(), self._database.kind == "postgresql"
        return f"convert_from('\\x{text}', 'UTF8')" if is_postgres else f"convert(x'{text}' USING utf8mb4)"


def _hex(kind: str, table: str) -> str:
    """The rows, with names that no client changes."""
    text = (
        "encode(convert_to(name, 'UTF8'), 'hex')"
        if kind == "postgresql"
        else "hex(convert(name USING utf8mb4))"
    )
    return f"SELECT id, {text} AS hex, amount FROM {table}"


def _table(
    database: DatabaseServer, name: str, table: str, *, key: bool = False, deletes: bool = False
) -> str:
    more = (", gone BOOLEAN" if deletes else "") + (", PRIMARY KEY (id) NOT ENFORCED" if key else "")
    options = {"delete_column": "gone"} if deletes else {}
    if not key:
        options["cursor_column"] = "id"
    return f"CREATE TABLE {name} ({COLUMNS}{more}) {database.options(table, **options)};\n"


@pytest.fixture
def kit(database: DatabaseServer, jdbc_spark: SparkSession) -> DatabaseKit:  # noqa: ARG001 - with its drivers
    return DatabaseKit(database)
