"""Runs a plan in a Spark driver."""

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.base import (
    Writer,
    WriteRequest,
)
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.print.sink import PrintSink
from spark_runner.references.resolver import Resolver
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.catalog_sink import add_insert, start_insert
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, reason
from spark_runner.sql.execution.insert_results import result_of, source_of
from spark_runner.sql.execution.inspection import INSPECTIONS, SHOWN_ROWS
from spark_runner.sql.execution.lakes import Mark, check_replaced, run_write
from spark_runner.sql.execution.places import check_places, on_this_host, with_built_ins
from spark_runner.sql.execution.quarantine import TooManyBadRows
from spark_runner.sql.execution.queries import StreamInserts
from spark_runner.sql.execution.rehearsal import Rehearsal, adds_twice_to_one_place
from spark_runner.sql.execution.rejects_table import RejectsTable
from spark_runner.sql.execution.replay import replayed
from spark_runner.sql.execution.statement_set import StatementSet
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.execution.stream_session import StreamSession
from spark_runner.sql.execution.stream_set import StreamSet
from spark_runner.sql.grammar.statements import CatalogAction
from spark_runner.sql.locations import comparable
from spark_runner.sql.restrictions import check_plan
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.full_name import full_name_of, may_be_same
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
    run.streams = StreamInserts(run.session, plan, control or StreamControl(), run.identities)
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
        run.end_streams()
    except SqlError:
        run.streams.wait(ending=True)
        raise
    finally:
        run.streams.close()
        run.cached.clear()
        if bad_rows is not None:
            bad_rows += run.quarantine.counts(in_order="mode" in plan)
    return run.results


class _Execution(StreamSession):
    """Runs the steps and writes the targets."""

    def __init__(
        self,
        session: SparkSession,
        plan: Mapping[str, Any],
        report: Callable[[str], None],
        writer: Writer,
        resolver: Resolver,
    ) -> None:
        super().__init__(session, plan, report, writer, resolver)
        self.inserts = sum(step["kind"] == "insert" or _writes_catalog(step) for step in self.steps)
        self.started = 0
        self.running_set: StatementSet | None = None
        self.stream_set: StreamSet | None = None
        self.emptied: list[tuple[str, ...]] = []  # keys of tables of catalogs that this attempt has replaced

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
            self.cached.add(self.declarations.find(name))
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
            if self.stream_set:
                self.stream_set.add(frame, step, self.stream_target(table, step, options))
                return
            if frame.isStreaming:
                self.start_stream(frame, table, step, options)
                return
            if self.running_set:
                self.running_set.check_reads(frame, step, self.error)
                catalogs.check_reads(self, step, frame, self.running_set.catalogs)
            key = tuple(table.get("primary_key", ()))
            source = source_of(table, step)
            mode, may_reject = self.write_mode(table, step), self.quarantine.tolerance(source)
            request = WriteRequest(
                mode,
                self.writer,
                key,
                may_reject=may_reject,
                target=table["name"],
                pushes=self.streams.pushes,
            )
            written = self.connectors.sink(table["connector"]).write(frame, options, request)
            if written.rejected is not None:
                self.quarantine.rejected(written.rejected, frame.schema, source, accepted=written.rows)
        except (TooManyBadRows, ConnectorError, *SPARK_ERRORS) as error:
            raise self.write_error(error, table, step) from error
        finally:
            self.quarantine.release()
        self.written.add(comparable(location))
        seconds = round(time.monotonic() - started, 3)
        self.results.append(result_of(table, step, frame.columns, written, seconds))
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
        if action is CatalogAction.INSERT_INTO and "mode" in self.plan:  # of streams
            if self.stream_set:
                add_insert(self, self.stream_set, step)
                return
            start_insert(self, step)
            self.refresh_catalogs()
            return
        if not action.writes:
            frame = catalogs.run(self, step)
            if action in catalogs.SHOWS:
                PrintSink().write(frame, {"limit": SHOWN_ROWS}, WriteRequest("append", self.writer))
            if action is CatalogAction.REFRESH:
                self.refresh_catalogs()
            elif action is CatalogAction.CREATE_TABLE and catalogs.replaces(self, step):
                check_replaced(self, step)
                self.emptied += [name.key for name in [full_name_of(step["target"])] if name]
            return
        started = time.monotonic()
        of_set = self.running_set.catalogs if self.running_set else ()
        rows = run_write(self, step, self._mark(step), of_set, repeats=self.writer.attempt > 1)
        self.results.append(
            {
                "target": step["target"],
                "connector": "catalog",
                "location": "",
                "rows": rows,
                "seconds": round(time.monotonic() - started, 3),
                "line": step["line"],
                "columns": [],
                "preview": [],
            }
        )
        if self.running_set:
            self.running_set.catalogs.append(step["target"])
        else:
            self.refresh_catalogs()

    def _mark(self, step: Mapping[str, Any]) -> Mark:
        """The identity of a write for all attempts, but for one into a table that each of them replaces."""
        name = full_name_of(step["target"])
        is_new = name is not None and any(may_be_same(name.key, each) for each in self.emptied)
        return Mark(self.writer.name if is_new else self.writer.run_key, self.started)

    def set_aside(self, table: RejectsTable, rows: DataFrame) -> str:
        """Add rows that do not fit to the table that the script names; readers behind a set see them."""
        if not self.running_set:
            return super().set_aside(table, rows)
        location = table.add(rows, self.writer)
        if location and self.connectors.writes_files(table.step["connector"]):
            self.running_set.add_written(location)
        return location

    def _begin_set(self, step: Mapping[str, Any]) -> None:
        """Cache what INSERTs of the set share, before the first of them; those of streams share a query."""
        if "stream" in step:
            self.stream_set = StreamSet(self, step)
            return
        self.running_set = StatementSet(step["cached"], self.cached)
        for name in self.running_set.names:
            self.cached.add(self.declarations.find(name))
        self.declare_again(self.running_set.names)

    def _end_set(self) -> None:
        """Release what the set has cached, and make its new files readable; or start its query."""
        if self.stream_set:
            self._start_set(self.stream_set)
        ended, self.running_set = self.running_set, None
        if ended is None:
            return
        for name in ended.names:
            self.cached.remove(name)
        self.declare_again(ended.names)
        for location in ended.written:
            self.refresh(location)
        if ended.catalogs:
            self.refresh_catalogs()

    def _start_set(self, found: StreamSet) -> None:
        self.stream_set = None
        try:
            found.start()
            self.refresh_catalogs()
        except (ConnectorError, *SPARK_ERRORS) as error:
            raise self.error(
                str(error) if isinstance(error, ConnectorError) else reason(error), found.begin
            ) from error


def _writes_catalog(step: Mapping[str, Any]) -> bool:
    return step["kind"] == "catalog" and CatalogAction(step["action"]).writes
