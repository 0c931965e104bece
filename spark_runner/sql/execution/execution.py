"""Runs a plan in a Spark driver."""

import time
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import (
    PermissiveSource,
    PermissiveStream,
    PositionedSource,
    Source,
    StreamingSource,
    Writer,
    WriteRequest,
    Written,
)
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.print.sink import PrintSink
from spark_runner.references.resolver import Resolver
from spark_runner.sql.checkpoints.record import Record
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.caching import CachedNames
from spark_runner.sql.execution.columns import DeclaredColumns
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, reason
from spark_runner.sql.execution.inspection import INSPECTIONS, SHOWN_ROWS
from spark_runner.sql.execution.judgement import RECORD, VERDICT
from spark_runner.sql.execution.names import ScriptSession
from spark_runner.sql.execution.places import check_places, on_this_host, with_built_ins
from spark_runner.sql.execution.quarantine import Origin, Quarantine, TooManyBadRows
from spark_runner.sql.execution.queries import NO_CHECKPOINTS, StreamInserts, Target
from spark_runner.sql.execution.rehearsal import Rehearsal, adds_twice_to_one_place
from spark_runner.sql.execution.rejects_table import RejectsTable
from spark_runner.sql.execution.replay import replayed
from spark_runner.sql.execution.statement_set import StatementSet
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.execution.stream_quarantine import JudgingSink, StreamQuarantine
from spark_runner.sql.grammar.statements import CatalogAction
from spark_runner.sql.locations import comparable
from spark_runner.sql.restrictions import check_plan
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.literals import quote_name


def execute(
    spark: SparkSession,
    plan: Mapping[str, Any],
    report: Callable[[str], None],
    writer: Writer | None = None,
    *,
    shares_jvm: bool = False,
    resolver: Resolver | None = None,
    bad_rows: list[dict[str, Any]] | None = None,
    control: StreamControl | None = None,
) -> list[dict[str, Any]]:
    """Run the statements of a plan in order; returns one dict per INSERT.

    Each dict has target, connector, location (empty if it has none), rows, seconds, line, columns, and
    preview: up to five rows of the target as text; of a streaming query also batches. Settings, tables and
    views exist in a session of this run only. A further attempt of a run first removes the rows that earlier
    ones added; without a `writer` the run has one attempt. `shares_jvm`: other jobs use the same JVM.
    `resolver` gives references their values. `bad_rows` gets the counts of rows that do not fit, one dict for
    each table that was read or written with rules. `control` ends streaming queries early, and gets their
    triggers. Raises SqlError at the failed place.
    """
    plan = with_built_ins(plan)
    check_plan(plan, shares_jvm=shares_jvm)
    check_places(plan)
    plan = on_this_host(plan)
    resolver = resolver or Resolver()
    plan = replayed(spark.newSession(), plan, resolver) if plan.get("replay") else plan
    run = _Execution(spark.newSession(), plan, report, writer or Writer(uuid.uuid4().hex), resolver)
    run.streams = StreamInserts(run.session, plan, control or StreamControl())
    if adds_twice_to_one_place(plan, run.connectors):
        report("comparing the INSERTs")
        rehearsal = Rehearsal(spark.newSession(), plan, lambda _phase: None, resolver)
        rehearsal.run()
        run.inferred = rehearsal.inferred
    run.recover()
    try:
        for step in plan["steps"]:
            run.step(step)
        run.await_streams()
    except SqlError:
        run.streams.wait(ending=True)
        raise
    finally:
        run.streams.close()
        run.cached.clear()
        if bad_rows is not None:
            bad_rows += run.quarantine.found.values()
    return run.results


class _Execution(ScriptSession):
    """Runs the steps and writes the targets."""

    def __init__(
        self,
        session: SparkSession,
        plan: Mapping[str, Any],
        report: Callable[[str], None],
        writer: Writer,
        resolver: Resolver,
    ) -> None:
        super().__init__(session, plan, report, resolver)
        self.writer = writer
        self.streams = StreamInserts(session, plan, StreamControl())
        self.inserts = sum(step["kind"] == "insert" or _writes_catalog(step) for step in self.steps)
        self.started = 0
        self.written: set[str] = set()  # locations that this run has written to
        self.judged: set[int] = set()  # the steps of tables whose rows are counted
        self.cached = CachedNames(session)
        self.running_set: StatementSet | None = None
        self.of_streams: StreamQuarantine | None = None  # made with the first stream
        self.begun = Record("", "")  # the positions at which the tables are declared now
        self.results: list[dict[str, Any]] = []
        named = (plan.get("bad_rows") or {}).get("table")
        self.rejects = RejectsTable(self, named) if named else None
        into = partial(self._set_aside, self.rejects) if self.rejects else None
        self.quarantine = Quarantine(plan, writer, into)

    def recover(self) -> None:
        """Restore the targets to their state before this run."""
        for step in self.steps:
            if step["kind"] == "table" and step["written"] and self.is_reached(step):
                options = self.options(step)
                try:
                    self.connectors.sink(step["connector"]).recover(self.session, options, self.writer)
                except ConnectorError as error:
                    raise self.error(f"table '{step['name']}': {error}", step) from error
                except SPARK_ERRORS as error:
                    # A target that cannot be read cannot be written: the first attempt fails at its write.
                    if self.writer.attempt > 1:
                        raise self.error(f"table '{step['name']}': {reason(error)}", step) from error

    def step(self, step: Mapping[str, Any]) -> None:
        """Run one statement."""
        if inspect := INSPECTIONS.get(step["kind"]):
            inspect(self, step)
        elif step["kind"] == "begin_set":
            self._begin_set(step)
        elif step["kind"] == "end_set":
            self._end_set()
        elif step["kind"] == "cache":
            self._cache(step)
        elif step["kind"] == "uncache":
            if step["name"] in self.cached:
                self.cached.remove(step["name"])
                self.declare_again([step["name"]])
        else:
            super().step(step)

    def _cache(self, step: Mapping[str, Any]) -> None:
        name = step["name"]
        if name not in self.cached:
            self.cached.add(self.declaration(name))
            self.declare_again([name])
        if step["lazy"]:
            return
        self.report(f"CACHE TABLE {name}")
        try:
            self.session.table(quote_name(name)).count()
        except SPARK_ERRORS as error:
            found = self.sent.place(error, self._statement(step))
            if found:
                passage, offset = found
                raise passage.error(reason(error), offset) from error
            raise self.error(f"caching '{name}' failed: {reason(error)}", step) from error

    def kept(self, step: Mapping[str, Any], frame: DataFrame) -> DataFrame:
        """The frame for readers of a name, perhaps with cached rows."""
        if step.get("watermark"):
            frame = frame.withWatermark(step["watermark"]["column"], step["watermark"]["delay"])
        return self.cached.declared(step, frame)

    def read_source(
        self, source: Source, step: Mapping[str, Any], options: Mapping[str, Any], schema: StructType | None
    ) -> DataFrame:
        """The rows of a table, as a stream where the mode of the script asks for it."""
        if step.get("stream") and isinstance(source, StreamingSource):
            position = self.begun.position(step["name"])
            if position is None:
                return source.stream(self.session, options, schema)
            if not isinstance(source, PositionedSource):
                raise ConnectorError(f"connector '{step['connector']}' cannot begin at a position")
            return source.stream_from(self.session, options, schema, position)
        return source.read(self.session, options, schema)

    def read_all(
        self,
        source: PermissiveSource,
        step: Mapping[str, Any],
        options: Mapping[str, Any],
        schema: StructType,
    ) -> DataFrame:
        """All records of a table, as a stream where the mode of the script asks for it."""
        if not step.get("stream"):
            return super().read_all(source, step, options, schema)
        if isinstance(source, PermissiveStream):
            position = self.begun.position(step["name"])
            return source.stream_all(self.session, options, schema, RECORD, position)
        return self.read_source(source, step, options, schema)

    def insert(self, step: Mapping[str, Any]) -> None:
        """Write the result of the query, and keep a report of it."""
        table = self.target(step)
        verb = "OVERWRITE" if step["overwrite"] else "INTO"
        self.started += 1
        self.report(f"INSERT {verb} {table['name']} ({self.started} of {self.inserts})")
        started = time.monotonic()
        location, options = table["location"], self.options(table)
        try:
            frame = self.query(step, table)
            if frame.isStreaming:
                self._start(frame, table, step, options)
                return
            if self.running_set:
                self.running_set.check_reads(frame, step, self.error)
            key = tuple(table.get("primary_key", ()))
            request = WriteRequest(self._mode(table, step), self.writer, key)
            written = self.connectors.sink(table["connector"]).write(frame, options, request)
            if written.rejected is not None:
                self.quarantine.rejected(written.rejected, _source(table, step), accepted=written.rows)
        except (TooManyBadRows, ConnectorError, *SPARK_ERRORS) as error:
            raise self._write_error(error, table, step) from error
        finally:
            self.quarantine.release()
        self.written.add(comparable(location))
        seconds = round(time.monotonic() - started, 3)
        self.results.append(_result(table, step, frame.columns, written, seconds))
        if location and self.running_set:
            if self.connectors.writes_files(table["connector"]):
                self.running_set.add_written(location)
        elif location:
            self.refresh(location)

    def catalog(self, step: Mapping[str, Any]) -> None:
        """Let Spark run a statement on a catalog, and keep a report of a write."""
        action = CatalogAction(step["action"])
        self.started += action.writes
        counted = f" ({self.started} of {self.inserts})" if action.writes else ""
        self.report(f"{action} {step['target']}{counted}".strip())
        started = time.monotonic()
        frame = catalogs.run(self, step)
        if action in catalogs.SHOWS:
            PrintSink().write(frame, {"limit": SHOWN_ROWS}, WriteRequest("append", self.writer))
        if action is CatalogAction.REFRESH:
            self.refresh_catalogs()
        if not action.writes:
            return
        self.results.append(
            {
                "target": step["target"],
                "connector": "catalog",
                "location": "",
                "rows": catalogs.rows_written(frame, action),
                "seconds": round(time.monotonic() - started, 3),
                "line": step["line"],
                "columns": [],
                "preview": [],
            }
        )
        self.refresh_catalogs()

    def _start(
        self, frame: DataFrame, table: Mapping[str, Any], step: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        """Start the streaming query of an INSERT; in mode available-now, wait for its end."""

        def begun_at(record: Record) -> DataFrame:
            if record.positions == self.begun.positions:
                return frame
            self.begun = record
            self.declare_again([each["name"] for each in self.declared if _streams(each)])
            return self.query(step, table)

        source, finish = _source(table, step), self.columns(table).checked_before_write
        own = self.connectors.sink(table["connector"])
        sink = JudgingSink(self._stream_quarantine(source), source, own, finish)
        self.streams.start(begun_at, step, Target(table, options, sink, self._mode(table, step)))
        self.written.add(comparable(table["location"]))
        if not self.streams.run_at_once:
            self.await_streams()
            if table["location"]:
                self.refresh(table["location"])

    def await_streams(self) -> None:
        """Wait for the end of the streaming queries; raises SqlError at the INSERT of each that failed."""
        ended = self.streams.wait()
        failed = list[tuple[SqlError, Exception]]()
        for each in ended:
            table, batches = each.target.table, each.batches
            written = Written(batches.rows, batches.preview)
            if each.step["kind"] == "insert":
                found = _result(table, each.step, each.columns, written, each.seconds)
                self.results.append({**found, "batches": batches.batches})
            if each.failure:
                failed.append((self._write_error(each.failure, table, each.step), each.failure))
        if failed:
            error, cause = failed[0]
            error.others = tuple(other for other, _ in failed[1:])
            raise error from cause

    def judge(self, step: Mapping[str, Any], frame: DataFrame) -> None:
        """Count the rows of a table that do not fit, and set them aside, at its first declaration."""
        is_unused = frame.isStreaming and not step["read"]
        if VERDICT not in frame.columns or id(step) in self.judged or is_unused:
            return
        self.judged.add(id(step))
        if frame.isStreaming:
            self._judge_stream(step, frame)
            return
        try:
            self.quarantine.take(frame, Origin.of(step["name"], step))
        except (ConnectorError, TooManyBadRows) as error:
            raise self.error(f"table '{step['name']}': {error}", step) from error

    def _judge_stream(self, step: Mapping[str, Any], frame: DataFrame) -> None:
        """Count them in a query of its own, whose progress is independent of those of the INSERTs."""

        def begun_at(record: Record) -> DataFrame:
            if record.positions == self.begun.positions:
                return frame
            before, self.begun = self.begun, record  # the INSERTs have positions of their own
            try:
                columns, again = self.columns(step), self.table_frame(step)
                return frame if again is None else columns.judged(columns.added_to(again))
            finally:
                self.begun = before

        source = Origin.of(step["name"], step)
        try:
            sink = JudgingSink(self._stream_quarantine(source), source)
            self.streams.start(begun_at, step, Target(step, {}, sink, "append"))
        except (ConnectorError, *SPARK_ERRORS) as error:
            raise self._write_error(error, step, step) from error
        if not self.streams.run_at_once:
            self.await_streams()

    def _stream_quarantine(self, source: Origin) -> StreamQuarantine:
        """The quarantine of all streams; it goes on with the counts of `source`."""
        if self.of_streams is None:
            if not (place := str(self.plan.get("checkpoints") or "")):
                raise ConnectorError(NO_CHECKPOINTS)
            self.of_streams = StreamQuarantine(self.session, self.quarantine, place, self.rejects)
        self.of_streams.resume(source)
        return self.of_streams

    def accepted(
        self, table: Mapping[str, Any], step: Mapping[str, Any], frame: DataFrame, columns: DeclaredColumns
    ) -> DataFrame:
        """The rows of an INSERT that fit; the others are set aside. Those of a stream are split later."""
        if step["kind"] != "insert" or VERDICT not in frame.columns:
            return super().accepted(table, step, frame, columns)
        if frame.isStreaming:
            return frame
        return columns.checked_before_write(self.quarantine.split(frame, _source(table, step)))

    def _set_aside(self, table: RejectsTable, rows: DataFrame) -> str:
        """Add rows that do not fit to the table that the script names; readers of the table see them."""
        location, step = table.add(rows, self.writer), table.step
        if location and self.running_set and self.connectors.writes_files(step["connector"]):
            self.running_set.add_written(location)
        elif location and not self.running_set:
            self.refresh(location)
        return location

    def _begin_set(self, step: Mapping[str, Any]) -> None:
        """Cache what INSERTs of the set share, before the first of them."""
        self.running_set = StatementSet(step["cached"], self.cached)
        for name in self.running_set.names:
            self.cached.add(self.declaration(name))
        self.declare_again(self.running_set.names)

    def _end_set(self) -> None:
        """Release what the set has cached, and make its new files readable."""
        ended, self.running_set = self.running_set, None
        if ended is None:
            return
        for name in ended.names:
            self.cached.remove(name)
        self.declare_again(ended.names)
        for location in ended.written:
            self.refresh(location)

    def _mode(self, table: Mapping[str, Any], step: Mapping[str, Any]) -> str:
        if step["overwrite"]:
            return "overwrite"
        if comparable(table["location"]) in self.written:
            return "append"
        return str(table["options"].get("mode", "append"))

    def _write_error(self, error: Exception, table: Mapping[str, Any], step: Mapping[str, Any]) -> SqlError:
        if isinstance(error, SqlError):
            return error
        if isinstance(error, TooManyBadRows | ConnectorError):
            return self.error(f"table '{table['name']}': {error}", step)
        if step["kind"] == "table":
            return self.error(f"table '{table['name']}': {reason(error)}", step)
        found = self.sent.place(error, self.passage(step["query"]))
        if found:
            passage, offset = found
            return passage.error(reason(error), offset)
        where = f" to '{table['location']}'" if table["location"] else ""
        return self.error(f"writing table '{table['name']}'{where} failed: {reason(error)}", step)


def _writes_catalog(step: Mapping[str, Any]) -> bool:
    return step["kind"] == "catalog" and CatalogAction(step["action"]).writes


def _result(
    table: Mapping[str, Any], step: Mapping[str, Any], columns: list[str], written: Written, seconds: float
) -> dict[str, Any]:
    return {
        "target": table["name"],
        "connector": table["connector"],
        "location": table["location"],
        "rows": written.rows,
        "seconds": seconds,
        "line": step["line"],
        "columns": columns,
        "preview": written.preview,
    }


def _streams(step: Mapping[str, Any]) -> bool:
    return step["kind"] == "table" and bool(step.get("stream"))


def _source(table: Mapping[str, Any], step: Mapping[str, Any]) -> Origin:
    """The name of the rows of an INSERT, in the quarantine."""
    return Origin.of(f"{table['name']} (line {step['line']})", step)
