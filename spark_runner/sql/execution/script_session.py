"""The names that a script declares, in a session of Spark."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.base import SAMPLE_ROWS, PermissiveSource, Source, UnboundedSource
from spark_runner.connectors.errors import ConnectorError, NothingThere
from spark_runner.connectors.files.source import FileSource
from spark_runner.references.resolver import Resolver
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.columns import METADATA, DeclaredColumns
from spark_runner.sql.execution.declarations import Declarations
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, condition, reason
from spark_runner.sql.execution.fit import fit
from spark_runner.sql.execution.folder import missing_message
from spark_runner.sql.execution.functions import FunctionError
from spark_runner.sql.execution.given_rows import given_rows
from spark_runner.sql.execution.judgement import (
    FILE,
    QUARANTINE_SCHEMA,
    RECORD,
    fitting,
    has_rules,
    kept_columns,
    visible,
)
from spark_runner.sql.execution.replayed_rows import replayed_rows
from spark_runner.sql.execution.script_context import ScriptContext
from spark_runner.sql.execution.script_functions import declare_function, register_offered
from spark_runner.sql.execution.settings import ScriptSettings
from spark_runner.sql.text.literals import quote_name

# Spark's words for "no data there", where the script itself will write later.
NOTHING_THERE = {"PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"}


class ScriptSession(ScriptContext):
    """Runs the steps of a plan in a session of Spark; a subclass defines INSERT."""

    def __init__(
        self,
        session: SparkSession,
        plan: Mapping[str, Any],
        report: Callable[[str], None],
        resolver: Resolver | None = None,
    ) -> None:
        super().__init__(session, plan, resolver)
        self.settings = ScriptSettings(session)
        self.report = report
        self.declarations = Declarations()
        self.inferred: dict[
            int, StructType
        ] = {}  # columns found in files, by the id of the step of the table
        register_offered(session, plan, self.source)

    def insert(self, step: Mapping[str, Any]) -> None:
        """Run an INSERT."""
        raise NotImplementedError

    def step(self, step: Mapping[str, Any]) -> None:
        """Run one statement."""
        match step["kind"]:
            case "set" | "reset":
                self._change_setting(step)
            case "table":
                self._table(step)
            case "view":
                self._view(step)
            case "function":
                self._function(step)
            case "insert":
                self.insert(step)
            case "catalog":
                self.catalog(step)
            case kind:
                raise self.error(f"this driver has no step of the kind '{kind}'", step)

    def catalog(self, step: Mapping[str, Any]) -> None:
        """Run a statement on a catalog that decides what names mean; a subclass runs the others, too."""
        if step["action"] in catalogs.USES:
            catalogs.run(self, step)

    def query(self, step: Mapping[str, Any], table: Mapping[str, Any]) -> DataFrame:
        """The rows that an INSERT writes, with the columns that its table declares."""
        if "replayed" not in step:
            return self._fitted([self.rows(step)], table, step)
        try:
            frames = given_rows(self.session, step["replayed"], self.schema(table))
        except ConnectorError as error:
            raise self.error(f"table '{table['name']}': {error}", step) from error
        return self._fitted(frames, table, {**step, "by_name": True})

    def rows(self, step: Mapping[str, Any]) -> DataFrame:
        """The rows of the query of a statement."""
        query = self.passage(step["query"])
        try:
            # A view is no CREATE VIEW: in an error of such a view, Spark 4 points at the query that reads it.
            frame = self.session.sql(self.sent.send(query))
        except SPARK_ERRORS as error:
            raise catalogs.located(self.session, self.sent, error, query) from error
        denied = bool(self.plan.get("denied_catalogs"))
        catalogs.check_relations(self.session, frame, query, denied=denied)
        return frame

    def declare(self, step: Mapping[str, Any]) -> None:
        """Make a table or view readable under its name."""
        frame = self.rows(step) if step["kind"] == "view" else self.table_frame(step)
        if frame is None:
            return
        if step["kind"] == "table":
            columns = self.columns(step)
            try:
                frame = self.judge(step, columns.judged(columns.added_to(frame)))
                frame = self.kept(step, columns.checked(fitting(frame)))
            except SPARK_ERRORS as error:
                raise self.error(f"table '{step['name']}': {reason(error)}", step) from error
        else:
            frame = self.kept(step, frame)
        frame.createOrReplaceTempView(quote_name(step["name"]))

    def judge(self, step: Mapping[str, Any], frame: DataFrame) -> DataFrame:  # noqa: ARG002 - of the subclass
        """The rows of a table with their verdicts; a subclass counts those that do not fit."""
        return frame

    def kept(self, step: Mapping[str, Any], frame: DataFrame) -> DataFrame:  # noqa: ARG002 - of the subclass
        """The frame for readers of a name; a subclass may keep its rows in Spark's cache."""
        return frame

    def table_frame(self, step: Mapping[str, Any]) -> DataFrame | None:
        """The frame for readers of the table; None if nothing is written yet."""
        schema = self.schema(step) or self.inferred.get(id(step))
        try:
            frame = self._read(step, schema)
        except ConnectorError as error:
            if step["written"] and isinstance(error, NothingThere):
                return self._no_bad_rows(schema) if self._takes_bad_rows(step) else None
            raise self.error(f"table '{step['name']}': {error}", step) from error
        except SPARK_ERRORS as error:
            if step["written"] and condition(error) in NOTHING_THERE:
                return self._no_bad_rows(schema) if self._takes_bad_rows(step) else None
            raise self.error(f"table '{step['name']}': {reason(error)}", step) from error
        if not step["written"]:
            found = visible(frame)
            self.inferred[id(step)] = StructType([each for each in frame.schema.fields if each.name in found])
        declared = self.schema(step)
        if declared is not None and visible(frame) != declared.fieldNames():
            # Spark adds the partitions that it finds in the folder, and moves declared ones to the end.
            known = [METADATA] if step.get("metadata") and METADATA in frame.columns else []
            frame = frame.select(*kept_columns(frame, [*declared.fieldNames(), *known]))
        return frame

    def _read(self, step: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The rows of a table; where rows may leave it, with their files and the records that do not fit."""
        if "replayed" in step:
            options = self.options(step)
            return replayed_rows(self.session, step, options, schema, tolerant=self.sets_aside)
        source, options = self.connectors.source(step["connector"]), self.options(step)
        # Columns that were found in the files are no promise about their records.
        leaves_out = bool(step["options"].get("ignore_parse_errors"))
        decodes = (self.sets_aside or leaves_out) and step["columns"] is not None
        if decodes and schema is not None and isinstance(source, PermissiveSource):
            frame = self.read_all(source, step, options, schema)
        else:
            frame = self.read_source(source, step, options, schema)
        if (self.sets_aside or has_rules(step)) and isinstance(source, FileSource):
            frame = frame.select("*", sql.col(f"{METADATA}.file_path").alias(FILE))
        return frame

    def read_all(
        self,
        source: PermissiveSource,
        step: Mapping[str, Any],  # noqa: ARG002 - of the subclass
        options: Mapping[str, Any],
        schema: StructType,
    ) -> DataFrame:
        """All records of a table, also those that do not fit; a subclass may read a stream."""
        return source.read_all(self.session, options, schema, RECORD)

    def read_source(
        self,
        source: Source,
        step: Mapping[str, Any],  # noqa: ARG002 - of the subclass
        options: Mapping[str, Any],
        schema: StructType | None,
    ) -> DataFrame:
        """The rows of a table that all fit, or some of one without an end; a subclass may read a stream."""
        if isinstance(source, UnboundedSource):
            return source.sample(self.session, options, schema, SAMPLE_ROWS)
        return source.read(self.session, options, schema)

    def _takes_bad_rows(self, step: Mapping[str, Any]) -> bool:
        return bool(step["name"] == (self.plan.get("bad_rows") or {}).get("table"))

    def _no_bad_rows(self, schema: StructType | None) -> DataFrame:
        """The table for rows that do not fit while there are none: a query of it works in good runs, too."""
        return self.session.createDataFrame([], schema or QUARANTINE_SCHEMA)

    def accepted(
        self,
        table: Mapping[str, Any],  # noqa: ARG002 - of the subclass
        step: Mapping[str, Any],  # noqa: ARG002 - likewise
        frame: DataFrame,
        columns: DeclaredColumns,
    ) -> DataFrame:
        """The judged rows of an INSERT that fit; computing one that fails the job is an error of Spark."""
        return columns.checked_before_write(fitting(frame))

    def refresh(self, location: str) -> None:
        """Declare the tables and views with new files again: Spark caches the list of files."""
        changed = self.declarations.at(location)
        for key in changed:
            self.inferred.pop(key, None)  # it described the previous files
        for step in self.declarations.reading(changed):
            self.declare(step)

    def refresh_catalogs(self) -> None:
        """Declare the views that read tables of catalogs again: they keep the state of a table."""
        for step in self.declarations.of_catalogs():
            self.declare(step)

    def declare_again(self, names: Collection[str]) -> None:
        """Declare these tables and views, and the views that may read them, again."""
        for step in self.declarations.reading({id(self.declarations.find(name)) for name in names}):
            self.declare(step)

    def _change_setting(self, step: Mapping[str, Any]) -> None:
        try:
            if step["kind"] == "set":
                self.settings.set(step["key"], step["value"])
            else:
                self.settings.reset(step["key"])
            self.resolver.again(self.session)
        except SPARK_ERRORS as error:
            raise self.error(reason(error), step) from error

    def _table(self, step: Mapping[str, Any]) -> None:
        self.tables[step["name"].lower()] = step
        if not self.is_reached(step):
            raise self.error(f"table '{step['name']}': {missing_message(self.plan['directory'])}", step)
        if not self.connectors.can_read(step["connector"]):
            return
        if not step["read"] and not self._is_readable(step):
            return
        if not step["written"]:
            self.report(f"CREATE TABLE {step['name']}")
        only_elsewhere = step["written"] or step.get("explained") or step.get("only_with_options")
        if step["read"] or not only_elsewhere:
            self.declare(step)
            self.declarations.add_table(step)

    def _is_readable(self, step: Mapping[str, Any]) -> bool:
        """Whether this mode can read the table: the compiler refuses only those that a statement reads."""
        if step.get("stream"):
            return step["columns"] is not None
        return not isinstance(self.connectors.source(step["connector"]), UnboundedSource)

    def _view(self, step: Mapping[str, Any]) -> None:
        self.declare(step)
        self.declarations.add_view(step, self.passage(step["query"]))

    def _function(self, step: Mapping[str, Any]) -> None:
        self.report(f"CREATE FUNCTION {step['name']}")
        try:
            declare_function(self.session, self.plan, step, self.passage)
        except (FunctionError, *SPARK_ERRORS) as error:
            words = str(error) if isinstance(error, FunctionError) else reason(error)
            raise self.error(f"function '{step['name']}': {words}", step) from error

    def _fitted(
        self, frames: Sequence[DataFrame], table: Mapping[str, Any], step: Mapping[str, Any]
    ) -> DataFrame:
        """All rows of the frames, with the columns that their table declares."""
        schema = self.schema(table)
        if schema is None:
            return reduce(DataFrame.unionByName, frames)
        tolerant = self.sets_aside
        fitted = partial(
            fit,
            schema=schema,
            by_name=step["by_name"],
            tolerant=tolerant,
            keeps_given=tolerant or has_rules(table),
        )
        try:
            columns = self.columns(table)
            judged = [columns.judged_before_write(fitted(frame)) for frame in frames]
            return self.accepted(table, step, reduce(DataFrame.unionByName, judged), columns)
        except ConnectorError as error:
            raise self.error(f"table '{table['name']}': {error}", step) from error
        except SPARK_ERRORS as error:
            raise self.error(f"table '{table['name']}': {reason(error)}", step) from error
