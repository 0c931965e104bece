"""Analyses every statement of a script against empty frames, to find the errors that need no rows.

A table with declared columns is an empty frame of them. A source without is read for its columns alone. An
INSERT leaves its columns at its target, for the statements behind it.
"""

import contextlib
import io
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.references.resolver import Resolver
from spark_runner.sql.catalog_guarantees import guarantee_of_catalog
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.analysed_names import NEEDS_CATALOG, AnalysedNames, NotAnalysed
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, condition, further_unresolved, reason
from spark_runner.sql.execution.fitting import Comparison, column_offsets, compare
from spark_runner.sql.execution.inspection import condition_frame
from spark_runner.sql.execution.lakes import keeps_marks
from spark_runner.sql.execution.places import on_this_host, with_built_ins
from spark_runner.sql.execution.probing import guarantee_of_files, probe_target, refusals
from spark_runner.sql.execution.report import Report
from spark_runner.sql.execution.script_session import NOTHING_THERE
from spark_runner.sql.execution.stream_frames import check_streamable, refused_in_set
from spark_runner.sql.grammar.references import formats_named
from spark_runner.sql.grammar.statements import CatalogAction
from spark_runner.sql.locations import comparable
from spark_runner.sql.text.errors import SqlError

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


class _Analysis(AnalysedNames):
    """Runs the declarations of a script with empty frames, and reports on the other statements."""

    with_plan = False
    is_in_set = False

    def found(self) -> Report:
        """Analyse all statements in order."""
        self.left, self.writers = {}, {}
        self.result = Report()
        self.created = list[str]()  # tables and namespaces of catalogs
        self.broken = {}
        self.lost_functions = set()
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
                    self.refuse_broken(step, "condition")
                    condition_frame(self, step)
                case "set" | "reset" | "table" | "view" | "function" | "insert" | "catalog":
                    self.step(step)
                case _:
                    self.entry["skipped"] = "it is not analysed"
        except NotAnalysed as why:
            self.entry["skipped"] = str(why)
        except SqlError as error:
            self.lose(step)
            self.result.add(error)

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
        except NotAnalysed as why:
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
        if self.is_in_set and (words := refused_in_set(frame)):
            raise self.error(words, step)

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
            raise NotAnalysed(NEEDS_CATALOG)
        self.refuse_broken(step, "statement")
        try:
            if action in catalogs.USES:
                catalogs.run(self, step)
            else:
                frame = catalogs.check_analysed(self, step)
                if frame is not None and frame.isStreaming:
                    self._check_catalog_stream(frame, step)
                is_kept = bool(guarantee) and keeps_marks(self.session, action, target)
                self.entry["guarantee"] = guarantee_of_catalog(action, streams=is_stream, is_kept=is_kept)
        except SqlError as error:
            self._refuse_created(error, (target, *self.named(step, "statement")))
            raise
        if action in {CatalogAction.CREATE_TABLE, CatalogAction.CREATE_NAMESPACE}:
            self.created.append(target)

    def _refuse_created(self, error: SqlError, names: Iterable[str]) -> None:
        """Raise NotAnalysed for a name that Spark does not find, where the script creates it."""
        if not catalogs.is_missing(error.__cause__):
            return
        for name in names:
            for created in self.created:
                if catalogs.may_create(created, name):
                    raise NotAnalysed(f"the script creates '{created}'") from error

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
        with self.probed(table, "write") as probe:
            resolved = {**table, "options": self.options(table)}
            if not probe_target(self.connectors, frame, resolved, overwrite=overwrite):
                message = f"connector '{table['connector']}' has no check of a target without a write"
                probe |= {"ok": None, "message": message}

    def rows(self, step: Mapping[str, Any]) -> DataFrame:
        """The query of a statement; its unknown columns are reported all together."""
        self.refuse_broken(step, "query")
        try:
            return super().rows(step)
        except SqlError as error:
            query = self.passage(step["query"])
            self._refuse_created(error, self.named(step, "query"))
            if self.left and formats_named(query.tokens) and _finds_nothing(error.__cause__):
                raise NotAnalysed("it names files that the script may write before") from error
            for other in further_unresolved(self.session, self.sent, query, error.__cause__):
                self.result.add(other)
            raise


def _finds_nothing(error: BaseException | None) -> bool:
    return isinstance(error, Exception) and condition(error) in NOTHING_THERE
