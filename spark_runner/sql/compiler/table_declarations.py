"""Checks declarations of tables, and adds them to a plan."""

from dataclasses import dataclass
from typing import Any

from spark_runner.connectors.files.format import names_bucket
from spark_runner.sql.compiler.connections import FindConnection
from spark_runner.sql.compiler.declaration import declared
from spark_runner.sql.compiler.names import Table
from spark_runner.sql.compiler.scope import Scope
from spark_runner.sql.compiler.steps import Steps
from spark_runner.sql.compiler.streams import Streams
from spark_runner.sql.compiler.tables import TableSpec, table_spec
from spark_runner.sql.grammar.columns import Columns, Violation
from spark_runner.sql.grammar.statements import CreateTable
from spark_runner.sql.locations import comparable


@dataclass
class TableDeclarations:
    """Adds the tables of one script."""

    steps: Steps
    scope: Scope
    base_dir: str
    find: FindConnection | None = None  # without it, tables with connections are not checked

    def add(self, statement: CreateTable, streams: Streams | None) -> None:
        """Check a declaration and append its step; raises ConnectionUnchecked without its connection.

        `streams` is None in mode batch.
        """
        self.scope.check_new(statement)
        spec = table_spec(statement, self.base_dir, self.find)
        columns = statement.columns
        step = self.steps.add(
            "table",
            statement.passage,
            name=statement.name,
            connector=spec.connector,
            options=spec.options,
            location=spec.location,
            beside=spec.beside,
            columns=columns.ddl().to_json(self.steps.values) if columns else None,
            read=False,
            written=False,
            **self._declared(columns),
            **self._referring(spec),
            **({"path_at": [*statement.passage.position(spec.path_offset)]} if spec.path_offset else {}),
            **(streams.of_table(statement, spec) if streams else {}),
        )
        self.steps.needs_own_jvm |= names_bucket(spec.options)
        place = comparable(spec.location) if spec.location else ""
        at = (statement.name, statement.passage, statement.name_offset)
        stored = tuple(columns.stored) if columns else ()
        self.scope.declare(
            Table(*at, spec=spec, step=step, place=place, number=self.steps.last, stored=stored)
        )

    def _declared(self, columns: Columns | None) -> dict[str, Any]:
        """The parts of a declaration that are more than stored columns."""
        found = declared(columns, self.steps.values) if columns else {}
        if found:
            self.steps.need_new_driver()
            self.steps.needs_own_jvm |= any(
                each["action"] != Violation.FAIL for each in found.get("expectations", ())
            )
        return found

    def _referring(self, spec: TableSpec) -> dict[str, Any]:
        """The part of a table with references; a JVM that other jobs use never gets their values."""
        if not spec.references:
            return {}
        self.steps.need_new_driver()
        self.steps.needs_own_jvm = True
        return {"references": spec.references}
