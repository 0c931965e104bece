"""A session of a run: its tables may be streams, and its INSERTs run as streaming queries then."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import (
    IdentifiedSource,
    LimitedSource,
    PermissiveSource,
    PermissiveStream,
    PositionedSource,
    ResumingSource,
    Source,
    StreamingSource,
    Writer,
)
from spark_runner.connectors.errors import ConnectorError
from spark_runner.references.resolver import Resolver
from spark_runner.sql.checkpoints.record import Record
from spark_runner.sql.execution.batch_rows import MARK, marks_in
from spark_runner.sql.execution.caching import CachedNames
from spark_runner.sql.execution.columns import DeclaredColumns
from spark_runner.sql.execution.diagnosis import reason
from spark_runner.sql.execution.insert_results import source_of, streamed_result_of
from spark_runner.sql.execution.judgement import RECORD, VERDICT
from spark_runner.sql.execution.quarantine import Origin, Quarantine, TooManyBadRows
from spark_runner.sql.execution.queries import NO_CHECKPOINTS, StreamInserts
from spark_runner.sql.execution.rejects_table import RejectsTable
from spark_runner.sql.execution.script_session import ScriptSession
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.execution.stream_frames import with_watermark
from spark_runner.sql.execution.stream_limits import RowsAgain, cloned, limit_of
from spark_runner.sql.execution.stream_quarantine import JudgingSink, StreamQuarantine
from spark_runner.sql.execution.stream_query import CountReads, Target
from spark_runner.sql.execution.table_reads import TableReads
from spark_runner.sql.execution.unfit_records import unfit_record
from spark_runner.sql.locations import comparable
from spark_runner.sql.text.errors import SqlError


class StreamSession(ScriptSession):
    """Reads tables as rows or streams, judges their rows, and keeps what the run has written."""

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
        self.streams = StreamInserts(session, plan, StreamControl(), self.identities)
        self.cached = CachedNames(session)
        self.is_in_batch = False  # the streams are micro-batches, whose rows are split later
        self._limit: int | None = None  # of the rows of a micro-batch, in place of that of the tables
        self.written: set[str] = set()  # locations that this run has written to
        self.results: list[dict[str, Any]] = []
        self._judged: set[int] = set()  # the steps of tables whose rows are counted
        self._marks: dict[int, str] = {}  # by the id of the step of a stream
        self._marked: dict[str, Origin] = {}
        self._of_streams: StreamQuarantine | None = None  # made with the first stream
        self._begun = Record("", "")  # the positions at which the tables are declared now
        named = (plan.get("bad_rows") or {}).get("table")
        self._rejects = RejectsTable(self, named) if named else None
        self.quarantine = Quarantine(
            plan, writer, partial(self.set_aside, self._rejects) if self._rejects else None
        )

    def kept(self, step: Mapping[str, Any], frame: DataFrame) -> DataFrame:
        """The frame for readers of a name, perhaps with cached rows; of a stream with its watermark."""
        return self.cached.declared(step, with_watermark(step, frame) if frame.isStreaming else frame)

    def read_source(
        self, source: Source, step: Mapping[str, Any], options: Mapping[str, Any], schema: StructType | None
    ) -> DataFrame:
        """The rows of a table, as a stream where the mode of the script asks for it."""
        options = self._limited(source, options)
        if step.get("stream") and isinstance(source, StreamingSource):
            position = self._begun.position(step.get("declared", step["name"]))
            if isinstance(source, ResumingSource):
                return source.stream_after(self.session, options, schema, position, self._begun.reached)
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
            options = self._limited(source, options)
            position = self._begun.position(step.get("declared", step["name"]))
            reached = self._begun.reached
            return source.stream_all(self.session, options, schema, RECORD, position, reached=reached)
        return self.read_source(source, step, options, schema)

    def start_stream(
        self, frame: DataFrame, table: Mapping[str, Any], step: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        """Start the streaming query of an INSERT; in mode available-now, wait for its end."""

        def begun_at(record: Record) -> DataFrame:
            return self.query(step, table) if self.begin_at(record) else frame

        again = self.rows_again(lambda script: script.query(step, table))
        target = self.stream_target(table, step, options)
        self.streams.start(begun_at, step, target, self.table_reads, again)
        self.await_at_once([table])

    def rows_again(self, read: Callable[["StreamSession"], DataFrame]) -> RowsAgain:
        """Gives the rows of a query with another limit; later statements of the script do not change them."""

        def again(frame: DataFrame) -> tuple[int, Callable[..., DataFrame]] | None:
            streams = [step for step in self.declarations.steps if _streams(step)]
            sources = [self.connectors.source(step["connector"]) for step in streams]
            names = {each.limit_of_spark for each in sources if isinstance(each, LimitedSource)}
            if (limit := limit_of(frame, names)) is None:
                return None
            declared = list(self.declarations.reading({id(step) for step in streams}))
            script, begun = copy.copy(self), self._begun
            script.session, script.sent = cloned(self.session), self.sent.copy()
            script.cached = CachedNames(script.session)

            def rows(limit: int, *, has_begun: bool) -> DataFrame:
                script._limit = limit  # noqa: SLF001 - a copy of this object
                script._begun = replace(begun, reached=None) if has_begun else begun  # noqa: SLF001 - likewise
                for step in declared:
                    script.declare(step)
                return read(script)

            return limit, rows

        return again

    def _limited(self, source: Source, options: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._limit is None or not isinstance(source, LimitedSource):
            return options
        return {**options, source.limit_option: self._limit}

    def begin_at(self, record: Record) -> bool:
        """Declare the streams at the positions of a checkpoint; returns whether that has changed them."""
        if not any(self._resumes(each, record) for each in self.declarations.steps):
            record = replace(record, reached=None)
        if (record.positions, record.reached) == (self._begun.positions, self._begun.reached):
            return False
        self._begun = record
        self.declare_again([each["name"] for each in self.declarations.steps if _streams(each)])
        return True

    def _resumes(self, step: Mapping[str, Any], record: Record) -> bool:
        """Whether the source of a stream needs to know how far its query has come."""
        if not _streams(step):
            return False
        source = self.connectors.source(step["connector"])
        position = record.position(step.get("declared", step["name"]))
        return isinstance(source, ResumingSource) and source.resumes(self.options(step), position)

    def identities(self, record: Record) -> Iterator[str]:
        """The identities of what the streams read now; raises SqlError if a checkpoint means other ones."""
        for step in filter(_streams, self.declarations.steps):
            source = self.connectors.source(step["connector"])
            if isinstance(source, IdentifiedSource):
                known, reached = record.identities, record.reached or ()
                try:
                    yield from source.identities(self.session, self.options(step), known, reached)
                except ConnectorError as error:
                    raise self.error(f"table '{step['name']}': {error}", step) from error

    def stream_target(
        self, table: Mapping[str, Any], step: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Target:
        """How the micro-batches of an INSERT are written, from its first one on."""
        source, finish = source_of(table, step), self.columns(table).checked_before_write
        own = self.connectors.sink(table["connector"])
        sink = JudgingSink(self._stream_quarantine(), source, own, finish)
        mode = str(table["options"].get("mode", "append"))  # of the first batch of all that write there
        self.written.add(comparable(table["location"]))
        return Target(table, options, sink, mode)

    def await_at_once(self, tables: Sequence[Mapping[str, Any]]) -> None:
        """Wait for the end of a query, unless all queries run at once; then its targets can be read."""
        if self.streams.run_at_once:
            return
        self.await_streams()
        for location in dict.fromkeys(table["location"] for table in tables):
            if location:
                self.refresh(location)

    def await_streams(self) -> None:
        """Wait for the end of the streaming queries; raises SqlError at the INSERT of each that failed."""
        ended = self.streams.wait()
        failed = list[tuple[SqlError, Exception]]()
        for each in ended:
            self.results += [streamed_result_of(insert, each) for insert in each.inserts]
            if each.failure:
                table, step = each.current.target.table, each.current.step
                failed.append((self.write_error(each.failure, table, step), each.failure))
        if failed:
            error, cause = failed[0]
            error.others = tuple(other for other, _ in failed[1:])
            raise error from cause

    def judge(self, step: Mapping[str, Any], frame: DataFrame) -> DataFrame:
        """Count the rows of a table that do not fit, and set them aside, at its first declaration.

        Those of a stream are marked: each micro-batch of an INSERT counts the rows that it reads.
        """
        is_unused = frame.isStreaming and not step["read"]
        if VERDICT not in frame.columns or is_unused:
            return frame
        if frame.isStreaming:
            mark = self._marks.setdefault(id(step), f"{MARK}{len(self._marks)}")
            self._marked[mark] = Origin.of(step["name"], step)
            return frame.alias(mark)
        if id(step) not in self._judged:
            self._judged.add(id(step))
            try:
                self.quarantine.take(frame, Origin.of(step["name"], step))
            except (ConnectorError, TooManyBadRows) as error:
                raise self.error(f"table '{step['name']}': {error}", step) from error
        return frame

    def _stream_quarantine(self) -> StreamQuarantine:
        """The quarantine of all streams."""
        if self._of_streams is None:
            if not (place := str(self.plan.get("checkpoints") or "")):
                raise ConnectorError(NO_CHECKPOINTS)
            queries = len(self.streams.names.all_folders())
            self._of_streams = StreamQuarantine(self.session, self.quarantine, place, self._rejects, queries)
        return self._of_streams

    def table_reads(self, frame: DataFrame, reader: str, stream: str) -> CountReads:
        """What counts the rows of tables that a query reads with these rows."""
        marks = marks_in(frame) if self._marked else ()
        tables = {mark: self._marked[mark] for mark in marks}
        return TableReads(self._stream_quarantine(), reader, stream, tables).count

    def end_streams(self) -> None:
        """Forget what further attempts of the run would need."""
        if self._of_streams is not None:
            self._of_streams.end()

    def accepted(
        self, table: Mapping[str, Any], step: Mapping[str, Any], frame: DataFrame, columns: DeclaredColumns
    ) -> DataFrame:
        """The rows of an INSERT that fit; the others are set aside. Those of a stream are split later."""
        if step["kind"] != "insert" or VERDICT not in frame.columns:
            return super().accepted(table, step, frame, columns)
        if frame.isStreaming or self.is_in_batch:
            return frame
        return columns.checked_before_write(self.quarantine.split(frame, source_of(table, step)))

    def set_aside(self, table: RejectsTable, rows: DataFrame) -> str:
        """Add rows that do not fit to the table that the script names; returns its location."""
        location = table.add(rows, self.writer)
        if location:
            self.refresh(location)
        return location

    def write_mode(self, table: Mapping[str, Any], step: Mapping[str, Any]) -> str:
        """How an INSERT treats rows of its target that are there: overwrite, append, or the option `mode`."""
        if step["overwrite"]:
            return "overwrite"
        if comparable(table["location"]) in self.written:
            return "append"
        return str(table["options"].get("mode", "append"))

    def write_error(self, error: Exception, table: Mapping[str, Any], step: Mapping[str, Any]) -> SqlError:
        """The error of an INSERT, or of the rows of a table that it reads, at its place in the script."""
        if isinstance(error, SqlError):
            return error
        source = error.source if isinstance(error, TooManyBadRows) else None
        if source is not None and source in self._marked.values():
            at = {"line": source.line, "column": source.column}
            return self.error(f"table '{source.name}': {error}", at)
        if isinstance(error, TooManyBadRows | ConnectorError):
            return self.error(f"table '{table['name']}': {error}", step)
        if unfit := unfit_record(self, error, step):
            return unfit
        found = self.sent.place(
            error, self.passage(step["query" if step["kind"] == "insert" else "statement"])
        )
        if found:
            passage, offset = found
            return passage.error(reason(error), offset)
        where = f" to '{table['location']}'" if table["location"] else ""
        return self.error(f"writing table '{table['name']}'{where} failed: {reason(error)}", step)


def _streams(step: Mapping[str, Any]) -> bool:
    return step["kind"] == "table" and bool(step.get("stream"))
