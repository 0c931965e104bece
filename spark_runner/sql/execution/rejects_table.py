"""The table that a script names for rows that do not fit."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.sql.execution.script_context import ScriptContext
from spark_runner.sql.text.literals import quote_name


class RejectsTable:
    """Adds rows to the table, with the columns that it declares."""

    def __init__(self, run: ScriptContext, name: str) -> None:
        self._run, self._name = run, name

    @property
    def step(self) -> Mapping[str, Any]:
        """The step of the plan that declares it."""
        return next(
            step for step in self._run.steps if step["kind"] == "table" and step["name"] == self._name
        )

    def recover(self, session: SparkSession, writer: Writer) -> None:
        """Remove the rows of this writer."""
        step = self.step
        self._run.connectors.sink(step["connector"]).recover(session, self._run.options(step), writer)

    def add(self, rows: DataFrame, writer: Writer) -> str:
        """Add rows; returns the location of the table."""
        step = self.step
        schema = self._run.schema(step)
        if schema is not None:
            columns = {quote_name(field.name): field for field in schema.fields}
            rows = rows.select(
                *[sql.col(name).cast(each.dataType).alias(each.name) for name, each in columns.items()]
            )
        request = WriteRequest("append", writer)
        self._run.connectors.sink(step["connector"]).write(rows, self._run.options(step), request)
        return str(step["location"])
