"""Analyses every statement of a script against empty frames, to find the errors that need no rows.

A table with declared columns is an empty frame of them. A source without is read for its columns alone. An
INSERT leaves its columns at its target, for the statements behind it.
"""

import contextlib
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.references.resolver import Resolver
from spark_runner.sql.catalog_guarantees import guarantee_of_catalog
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, condition, further_unresolved, reason
from spark_runner.sql.execution.fitting import Comparison, column_offsets, compare
from spark_runner.sql.execution.inspection import condition_frame
from spark_runner.sql.execution.places import on_this_host, with_built_ins
from spark_runner.sql.execution.probing import guarantee_of_files, probe_target, refusals
from spark_runner.sql.execution.rehearsal import Rehearsal, UnknownColumns
from spark_runner.sql.execution.report import Report
from spark_runner.sql.execution.script_session import NOTHING_THERE, ScriptSession
from spark_runner.sql.execution.stream_frames import (
    check_streamable,
    empty_frame,
    empty_stream,
    refused_in_set,
    with_watermark,
)
from spark_runner.sql.grammar.calls import calls
from spark_runner.sql.grammar.references import catalog_names, formats_named, references
from spark_runner.sql.grammar.statements import CatalogAction
from spark_runner.sql.locations import comparable
from spark_runner.sql.text.errors import SqlError

_IN_THE_SCRIPT = {"inline"}  # connectors whose rows the script holds: reading them contacts nothing
_NEEDS_CATALOG = "--connect lets Spark look into catalogs"
_WITHOUT_COLUMNS = {"set", "reset", "cache", "uncache", "begin_set", "end_set"}


def analyse_script(
    spark: SparkSession,
    plan: Mapping[str, Any],
    *,
    connect: bool = False,
    with_plan: bool = False,
    resolver: Resolver | None = None,
) -> dict[str, Any]:
    """The statements of a plan with their columns, and all errors and warnings; nothing is written.

    `connect`: also read one row of each source, and check that each target can be written. `with_plan`: also
    Spark's plan of each statement.
    """
    plan = on_this_host(with_built_ins(plan))
    analysis = _Analysis(spark.newSession(), plan, lambda _phase: None, resolver)
    analysis.connect, analysis.with_plan = connect, with_plan
    return vars(analysis.found())


class _NotAnalysed(Exception):
    """The statement needs something that has an error of its own, or is unknown before a run."""


class _Analysis(Rehearsal):
    """Runs the declarations of a script with empty frames, and reports on the other statements."""

    connect = False
    with_plan = False
    is_in_set = False

    def found(self) -> Report:
        """Analyse all statements in order."""
        self.left, self.writers = {}, {}
        self.result = Report()
        self.created = list[str]()  # tables and namespaces of catalogs
        self.broken = dict[str, str]()  # lower-case names that have no meaning, with the reason
        self.lost_functions = set[str]()  # lower-case names of functions with errors
        self.entry: dict[str, Any] = {}
        for step in self.steps:
            self._analyse(step)
        return self.result

    def _analyse(self, step: Mapping[str, Any]) -> None:
        kind = step["kind"]
        self.is_in_set = self.is_in_set or kind == "begin_set"
        self.is_in_set &= kind != "end_set"
        if kind in _WITHOUT_COLUMNS - {"set", "reset"}:
            return
        self.entry = {"kind": kind, "line": step["line"], "column": step["column"]}
        if kind not in {"set", "reset", "table", "view", "function"}:
            self.result.statements.append(self.entry)
        try:
            match kind:
                case "query":
                    self._describe(self.rows(step))
                case "explain":
                    self._explain(step)
                case "assert":
                    self._refuse_broken(step, "condition")
                    condition_frame(self, step)
                case "set" | "reset" | "table" | "view" | "function" | "insert" | "catalog":
                    self.step(step)
                case _:
                    self.entry["skipped"] = "it is not analysed"
        except _NotAnalysed as why:
            self.entry["skipped"] = str(why)
        except SqlError as error:
            self._lose(step)
            self.result.add(error)

    def _lose(self, step: Mapping[str, Any]) -> None:
        """Keep that what the statement declares has no meaning."""
        if step["kind"] == "table":
            self._break(step, "has an error")
        elif step["kind"] == "function":
            self.lost_functions.add(step["name"].lower())

    def insert(self, step: Mapping[str, Any]) -> None:
        """Compare the columns of the query with the target, and keep what it would leave there."""
        table = self.tables[step["target"].lower()]
        overwrite = bool(step["overwrite"])
        self.entry |= {
            "target": table["name"],
            "connector": table["connector"],
            "location": table["location"],
            "overwrite": overwrite,
            "guarantee": guarantee_of_files(overwrite=overwrite)
            if self.connectors.writes_files(table["connector"])
            else "",
            **self._mode(),
        }
        frame = self._fits(step, table)
        if frame is None:
            if table["location"]:  # later readers see unknown columns
                place = comparable(table["location"])
                self.left[place], self.writers[place] = None, table
                self.refresh(table["location"])
            return
        if self.connect and not self.changed_places(table):  # else the script replaces what is there now
            self._probe_target(frame, table, overwrite=overwrite)
        super().insert(step)

    def _fits(self, step: Mapping[str, Any], table: Mapping[str, Any]) -> DataFrame | None:
        """The rows as the target gets them; None after an error, which is reported."""
        try:
            frame = self.rows(step)
            declared, by_name = self.schema(table), step["by_name"]
            compared = compare(
                self.session, frame.schema, declared, by_name=by_name, tolerant=self.sets_aside
            )
            self._describe(frame, compared)
            self._add_differences(compared, step, table)
            if compared.has_error:
                return None
            fitted = self._fitted([frame], table, step)
            self._check_stream(fitted, step)
        except _NotAnalysed as why:
            self.entry["skipped"] = str(why)
            return None
        except SqlError as error:
            self.result.add(error)
            return None
        refused = list(refusals(fitted, table))
        for words in refused:
            self.result.add(self.error(f"table '{table['name']}': {words}", step))
        return None if refused else fitted

    def _check_stream(self, frame: DataFrame, step: Mapping[str, Any]) -> None:
        """Raise SqlError for a streaming query that Spark would refuse at its start."""
        if not frame.isStreaming:
            return
        try:
            check_streamable(frame)
        except SPARK_ERRORS as error:
            query = self.passage(step["query"])
            passage, offset = self.sent.place(error, query) or (query, 0)
            raise passage.error(reason(error), offset) from error
        if self.is_in_set and (words := refused_in_set(frame)):
            raise self.error(words, step)

    def _check_catalog_stream(self, frame: DataFrame, step: Mapping[str, Any]) -> None:
        try:
            check_streamable(frame)
        except SPARK_ERRORS as error:
            raise catalogs.failed(self, step, error) from error

    def _mode(self) -> dict[str, Any]:
        return {key: self.plan[key] for key in ("mode", "trigger_ms") if key in self.plan}

    def catalog(self, step: Mapping[str, Any]) -> None:
        """Analyse a statement on a catalog, or run it if it only decides what names mean."""
        action, target = step["action"], step["target"]
        is_stream = action == CatalogAction.INSERT_INTO and "mode" in self.plan
        guarantee = guarantee_of_catalog(action, streams=is_stream)
        self.entry |= {"action": action, "target": target, "guarantee": guarantee}
        self.entry |= self._mode() if is_stream else {}
        if not self.connect:
            raise _NotAnalysed(_NEEDS_CATALOG)
        self._refuse_broken(step, "statement")
        try:
            if action in catalogs.USES:
                catalogs.run(self, step)
            else:
                frame = catalogs.check_analysed(self, step)
                if frame is not None and frame.isStreaming:
                    self._check_catalog_stream(frame, step)
        except SqlError as error:
            self._refuse_created(error, (target, *self._named(step, "statement")))
            raise
        if action in {CatalogAction.CREATE_TABLE, CatalogAction.CREATE_NAMESPACE}:
            self.created.append(target)

    def _named(self, step: Mapping[str, Any], part: str) -> list[str]:
        return [str(name) for name in catalog_names(self.passage(step[part]).tokens).values()]

    def _refuse_created(self, error: SqlError, names: Iterable[str]) -> None:
        """Raise _NotAnalysed for a name that Spark does not find, where the script creates it."""
        if not catalogs.is_missing(error.__cause__):
            return
        for name in names:
            for created in self.created:
                if catalogs.may_create(created, name):
                    raise _NotAnalysed(f"the script creates '{created}'") from error

    def _explain(self, step: Mapping[str, Any]) -> None:
        if not step["target"]:
            self._describe(self.rows(step))
        else:
            self._fits(step, self.tables[step["target"].lower()])

    def _describe(self, frame: DataFrame, compared: Comparison | None = None) -> None:
        given = compare(self.session, frame.schema, None, by_name=False) if compared is None else compared
        self.entry["columns"] = given.columns
        if self.with_plan:
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                # Spark sees a stream in an analysed query alone, and not in the text of one.
                (frame.select("*") if frame.isStreaming else frame).explain(mode="formatted")
            self.entry["plan"] = shown.getvalue().strip()

    def _add_differences(
        self, compared: Comparison, step: Mapping[str, Any], table: Mapping[str, Any]
    ) -> None:
        query = self.passage(step["query"])
        offsets = column_offsets(query, len(compared.columns))
        for difference in compared.differences:
            message = f"table '{table['name']}': {difference.message}"
            if difference.column is None or offsets is None:
                error = self.error(message, step)
            else:
                error = query.error(message, offsets[difference.column])
            self.result.add(error, is_error=difference.is_error)

    def _probe_target(self, frame: DataFrame, table: Mapping[str, Any], *, overwrite: bool) -> None:
        with self._probed(table, "write"):
            resolved = {**table, "options": self.options(table)}
            probe_target(self.connectors, frame, resolved, overwrite=overwrite)

    @contextlib.contextmanager
    def _probed(self, table: Mapping[str, Any], verb: str) -> Iterator[dict[str, Any]]:
        probe: dict[str, Any] = {"table": table["name"], "verb": verb, "ok": True}
        self.result.probes.append(probe)
        try:
            yield probe
        except SqlError as error:
            probe |= {"ok": False, "message": error.message}
            self.result.add(error)
        except (ConnectorError, *SPARK_ERRORS) as error:
            words = str(error) if isinstance(error, ConnectorError) else reason(error)
            probe |= {"ok": False, "message": words}
            self.result.add(self.error(f"table '{table['name']}': {words}", table))

    # ------------------------------------------------------------------ names
    def rows(self, step: Mapping[str, Any]) -> DataFrame:
        """The query of a statement; its unknown columns are reported all together."""
        self._refuse_broken(step, "query")
        try:
            return super().rows(step)
        except SqlError as error:
            query = self.passage(step["query"])
            self._refuse_created(error, self._named(step, "query"))
            if self.left and formats_named(query.tokens) and _finds_nothing(error.__cause__):
                raise _NotAnalysed("it names files that the script may write before") from error
            for other in further_unresolved(self.session, self.sent, query, error.__cause__):
                self.result.add(other)
            raise

    def _refuse_broken(self, step: Mapping[str, Any], part: str) -> None:
        """Raise _NotAnalysed if a text names something without a meaning: errors would be consequences."""
        tokens = self.passage(step[part]).tokens
        for name in references(tokens):
            if name in self.broken:
                raise _NotAnalysed(f"'{name}' {self.broken[name]}")
        if lost := next((name for name, *_ in calls(tokens) if name in self.lost_functions), None):
            raise _NotAnalysed(f"function '{lost}' has an error")
        for full_name in [] if self.connect else self._named(step, part):
            raise _NotAnalysed(f"it reads '{full_name}': {_NEEDS_CATALOG}")

    def declare(self, step: Mapping[str, Any]) -> None:
        """Make the name readable, or keep the reason why it has no meaning."""
        self.broken.pop(step["name"].lower(), None)
        try:
            ScriptSession.declare(self, step)
        except _NotAnalysed as why:
            self._break(step, f"is not analysed, because {why}")
        except SqlError as error:
            if isinstance(error.__cause__, UnknownColumns):
                self._break(step, "has columns that are known when the script has written it")
                return
            self._break(step, "has an error")
            self.result.add(error)

    def kept(self, step: Mapping[str, Any], frame: DataFrame) -> DataFrame:
        """The frame for readers of a name; of a stream with its watermark."""
        return with_watermark(step, frame) if frame.isStreaming else frame

    def _break(self, step: Mapping[str, Any], words: str) -> None:
        self.broken[step["name"].lower()] = words
        with contextlib.suppress(*SPARK_ERRORS):
            self.session.catalog.dropTempView(step["name"])

    def table_frame(self, step: Mapping[str, Any]) -> DataFrame | None:
        """An empty frame with the columns of the table, read from the source only where none are declared."""
        if step["connector"] in _IN_THE_SCRIPT or self.changed_places(step):
            return super().table_frame(step)
        if self.connect and not step["written"]:
            self._probe_source(step)
        if (schema := self.schema(step)) is not None:
            return (empty_stream if step.get("stream") else empty_frame)(self.session, schema)
        frame = super().table_frame(step)
        if frame is None:
            return None
        if step["name"] not in self.result.contacted:
            self.result.contacted.append(step["name"])
        return empty_frame(self.session, frame.schema)

    def _probe_source(self, step: Mapping[str, Any]) -> None:
        if any(probe["table"] == step["name"] and probe["verb"] == "read" for probe in self.result.probes):
            return
        with self._probed(step, "read") as probe:
            frame = ScriptSession.table_frame(self, step)
            row = None if frame is None else frame.first()
            probe["rows"] = 0 if row is None else 1


def _finds_nothing(error: BaseException | None) -> bool:
    return isinstance(error, Exception) and condition(error) in NOTHING_THERE
