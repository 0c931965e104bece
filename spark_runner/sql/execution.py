"""Runs a plan in a Spark driver."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.registry import SINKS, SOURCES
from spark_runner.sql.diagnosis import SPARK_ERRORS, SentTexts, condition, reason
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
        self.declared: list[Mapping[str, Any]] = []  # tables and views that can be read, in order
        self.sent = SentTexts()
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
        self.tables[step["name"].lower()] = step
        if step["connector"] not in SOURCES:
            return
        if not step["written"]:
            self.report(f"CREATE TABLE {step['name']}")
        if step["read"] or not step["written"]:
            self._declare(step)
            self.declared.append(step)

    def _view(self, step: Mapping[str, Any]) -> None:
        self._declare(step)
        self.declared.append(step)

    def _declare(self, step: Mapping[str, Any]) -> None:
        """Make a table or view readable under its name."""
        frame = self._view_frame(step) if step["kind"] == "view" else self._table_frame(step)
        if frame is not None:
            frame.createOrReplaceTempView(quote_name(step["name"]))

    def _view_frame(self, step: Mapping[str, Any]) -> DataFrame:
        query = Passage.from_json(self.source, step["query"])
        try:
            # Not CREATE VIEW: where such a view fails, Spark 4 points at who reads it.
            return self.session.sql(self.sent.send(query))
        except SPARK_ERRORS as error:
            raise self.sent.located(error, query) from error

    def _table_frame(self, step: Mapping[str, Any]) -> DataFrame | None:
        schema = self._schema(step)
        try:
            return SOURCES[step["connector"]].read(self.session, step["options"], schema)
        except ConnectorError as error:
            raise self._error(f"table '{step['name']}': {error}", step) from error
        except SPARK_ERRORS as error:
            if step["written"] and condition(error) in _NOTHING_THERE:
                return None
            raise self._error(f"table '{step['name']}': {reason(error)}", step) from error

    def _schema(self, step: Mapping[str, Any]) -> StructType | None:
        if step["columns"] is None:
            return None
        columns = Passage.from_json(self.source, step["columns"])
        sent = SentTexts()
        try:
            schema = StructType.fromDDL(sent.send(columns))
        except SPARK_ERRORS as error:
            raise sent.located(error, columns) from error
        return schema if isinstance(schema, StructType) else None

    def _insert(self, step: Mapping[str, Any]) -> None:
        table = self.tables[step["target"].lower()]
        verb = "OVERWRITE" if step["overwrite"] else "INTO"
        self.report(f"INSERT {verb} {table['name']} ({len(self.results) + 1} of {self.inserts})")
        query = Passage.from_json(self.source, step["query"])
        started = time.monotonic()
        try:
            frame = self.session.sql(self.sent.send(query))
        except SPARK_ERRORS as error:
            raise self.sent.located(error, query) from error
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
        if location:
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
        found = self.sent.place(error, query)
        if found:
            passage, offset = found
            return passage.error(reason(error), offset)
        where = f" to '{table['location']}'" if table["location"] else ""
        return self._error(f"writing table '{table['name']}'{where} failed: {reason(error)}", step)

    def _refresh(self, location: str) -> None:
        """Declare all names again if one of them has other files now; Spark keeps the list it saw first."""
        if any(step["kind"] == "table" and step["location"] == location for step in self.declared):
            for step in self.declared:
                self._declare(step)
