"""Runs a plan in a Spark driver."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.registry import SINKS, SOURCES
from spark_runner.sql.diagnosis import SPARK_ERRORS, condition, located, place, reason
from spark_runner.sql.errors import SqlError
from spark_runner.sql.literals import quote_name
from spark_runner.sql.projection import fit
from spark_runner.sql.source import Anchor, Passage, Source

# What a target that nothing was written to yet says when it is read.
_NOTHING_THERE = {"PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"}


def execute(
    spark: SparkSession, plan: Mapping[str, Any], report: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Run the statements of a plan in order; one dict per INSERT.

    Each has target, connector, location (empty if it has none), rows, seconds, line, columns, and preview:
    up to five rows of the target as text. Settings, tables and views are of this run only: it works in a
    session of its own. Raises SqlError at the place in the script that failed.
    """
    run = _Run(spark.newSession(), plan, report)
    # The script's variables are replaced already; Spark's own `${...}` would read the driver's environment.
    run.session.conf.set("spark.sql.variable.substitute", "false")
    for step in plan["steps"]:
        run.step(step)
    return run.results


class _Run:
    """The names that the steps so far have made."""

    def __init__(self, session: SparkSession, plan: Mapping[str, Any], report: Callable[[str], None]) -> None:
        self.session = session
        self.source = Source(plan["file"], plan["source"])
        self.report = report
        self.inserts = sum(step["kind"] == "insert" for step in plan["steps"])
        self.tables: dict[str, Mapping[str, Any]] = {}
        self.views: dict[str, Passage] = {}
        self.written: set[str] = set()  # locations that this run has written to
        self.results: list[dict[str, Any]] = []

    def step(self, step: Mapping[str, Any]) -> None:
        """Run one statement."""
        match step["kind"]:
            case "set":
                self._set(step)
            case "table":
                self._table(step)
            case "view":
                self._view(step)
            case "insert":
                self._insert(step)
            case kind:
                raise self._error(f"this driver does not know the step '{kind}'", step)

    def _error(self, message: str, step: Mapping[str, Any]) -> SqlError:
        return self._statement(step).error(message)

    def _statement(self, step: Mapping[str, Any]) -> Passage:
        """A passage without text that stands where the statement does."""
        return Passage(
            self.source, "", (Anchor(0, self.source.offset(step["line"], step["column"]), verbatim=True),)
        )

    def _set(self, step: Mapping[str, Any]) -> None:
        try:
            self.session.conf.set(step["key"], step["value"])
        except SPARK_ERRORS as error:
            raise self._error(reason(error), step) from error

    def _table(self, step: Mapping[str, Any]) -> None:
        name = step["name"].lower()
        self.tables[name] = step
        self.views.pop(name, None)
        self.session.catalog.dropTempView(step["name"])  # OR REPLACE of a view or an earlier table
        if not step["written"]:
            self.report(f"CREATE TABLE {step['name']}")
            self._register(step)
        elif step["read"]:
            self._register(step, may_be_missing=True)

    def _register(self, step: Mapping[str, Any], *, may_be_missing: bool = False) -> None:
        """Make a table readable under its name."""
        schema = self._schema(step)
        try:
            frame = SOURCES[step["connector"]].read(self.session, step["options"], schema)
            frame.createOrReplaceTempView(quote_name(step["name"]))
        except ConnectorError as error:
            raise self._error(str(error), step) from error
        except SPARK_ERRORS as error:
            if may_be_missing and condition(error) in _NOTHING_THERE:
                return
            raise self._error(f"table '{step['name']}': {reason(error)}", step) from error

    def _schema(self, step: Mapping[str, Any]) -> StructType | None:
        if step["columns"] is None:
            return None
        columns = Passage.from_json(self.source, step["columns"])
        try:
            schema = StructType.fromDDL(columns.text)
        except SPARK_ERRORS as error:
            raise located(error, columns, {}) from error
        return schema if isinstance(schema, StructType) else None

    def _view(self, step: Mapping[str, Any]) -> None:
        query = Passage.from_json(self.source, step["query"])
        head = f"CREATE OR REPLACE TEMPORARY VIEW {quote_name(step['name'])} AS "
        try:
            self.session.sql(head + query.text)
        except SPARK_ERRORS as error:
            raise located(error, query, self.views, skip=len(head)) from error
        self.views[step["name"].lower()] = query

    def _insert(self, step: Mapping[str, Any]) -> None:
        table = self.tables[step["target"].lower()]
        verb = "OVERWRITE" if step["overwrite"] else "INTO"
        self.report(f"INSERT {verb} {table['name']} ({len(self.results) + 1} of {self.inserts})")
        query = Passage.from_json(self.source, step["query"])
        started = time.monotonic()
        try:
            frame = self.session.sql(query.text)
        except SPARK_ERRORS as error:
            raise located(error, query, self.views) from error
        frame = self._fitted(frame, table, step)
        location = table["location"]
        try:
            written = SINKS[table["connector"]].write(frame, table["options"], self._mode(table, step))
        except ConnectorError as error:
            raise self._error(f"table '{table['name']}': {error}", step) from error
        except SPARK_ERRORS as error:
            raise self._write_error(error, query, table, step) from error
        self.written.add(location)
        self.results.append(
            {
                "target": table["name"],
                "connector": table["connector"],
                "location": location,
                "rows": written.rows,
                "seconds": round(time.monotonic() - started, 3),
                "line": step["line"],
                "columns": frame.columns,
                "preview": written.preview,
            }
        )
        self._refresh(location)

    def _fitted(self, frame: DataFrame, table: Mapping[str, Any], step: Mapping[str, Any]) -> DataFrame:
        schema = self._schema(table)
        if schema is None:
            return frame
        try:
            return fit(frame, schema, by_name=step["by_name"])
        except ConnectorError as error:
            raise self._error(f"table '{table['name']}': {error}", step) from error
        except SPARK_ERRORS as error:
            raise self._error(f"table '{table['name']}': {reason(error)}", step) from error

    def _mode(self, table: Mapping[str, Any], step: Mapping[str, Any]) -> str:
        if step["overwrite"]:
            return "overwrite"
        if table["location"] in self.written:
            return "append"
        return str(table["options"].get("mode", "append"))

    def _write_error(
        self, error: Exception, query: Passage, table: Mapping[str, Any], step: Mapping[str, Any]
    ) -> SqlError:
        found = place(error, query, self.views)
        if found:
            passage, offset = found
            return passage.error(reason(error), offset)
        where = f" to '{table['location']}'" if table["location"] else ""
        return self._error(f"writing table '{table['name']}'{where} failed: {reason(error)}", step)

    def _refresh(self, location: str) -> None:
        """Read again what now has other files; Spark keeps the list of files it saw first."""
        if not location:
            return
        for table in self.tables.values():
            if table["location"] == location and (table["read"] or not table["written"]):
                self._register(table)
