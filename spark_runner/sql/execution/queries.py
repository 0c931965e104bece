"""The streaming queries of a script, from their start to their end."""

import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_runner.connectors.base import WriteRequest
from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.batch_limits.tuner import LimitTuner, Tuning
from spark_runner.sql.checkpoints.record import Record
from spark_runner.sql.execution.batch_writer import BatchWriter
from spark_runner.sql.execution.calling_threads import calling_connection
from spark_runner.sql.execution.checkpoints import Checkpoint
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.fingerprints import fingerprint
from spark_runner.sql.execution.judgement import visible
from spark_runner.sql.execution.query_names import QueryNames
from spark_runner.sql.execution.shared_targets import SharedTarget
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.execution.stream_frames import without_csv_pushdown
from spark_runner.sql.execution.stream_limits import ChangingLimit, RowsAgain
from spark_runner.sql.execution.stream_query import CountReads, RowsOfBatch, StreamInsert, StreamQuery, Target
from spark_runner.sql.execution.triggers import IDLE_INTERVAL, IDLE_MILLISECONDS, Triggers
from spark_runner.sql.locations import comparable

NO_CHECKPOINTS = (
    "a stream needs a folder for its progress that outlives its driver; an operator can set `checkpoints`"
)
Reads = Callable[[DataFrame, str, str], CountReads]
"""Gives what counts the rows of tables that a query reads, by its frame, its folder and its stream."""

Identities = Callable[[Record], Iterable[str]]
"""Gives the identities of what the streams read; raises SqlError if they are not those of a checkpoint."""

_LOOK_SECONDS = 0.2  # between two looks at the queries


class StreamInserts:
    """Starts the queries of a script, and waits for their ends."""

    def __init__(
        self, session: SparkSession, plan: Mapping[str, Any], control: StreamControl, identities: Identities
    ) -> None:
        self._session, self._plan, self._control = session, plan, control
        self.pushes = control.pushes
        self._identities = identities
        self.run_at_once = plan.get("mode") == "streaming"  # else a query reads what is there, and ends
        self.names = QueryNames(plan["steps"])
        self._queries: list[StreamQuery] = []
        self._places: dict[str, tuple[threading.Lock, threading.Event]] = {}
        self._triggers = Triggers(control.triggered, partial(calling_connection, session))
        self._watched: list[SparkSession] = []  # whose queries report their triggers

    def start(
        self,
        begun_at: Callable[[Record], DataFrame],
        step: Mapping[str, Any],
        target: Target,
        reads: Reads,
        again: RowsAgain,
    ) -> None:
        """Start the query of an INSERT.

        `begun_at` returns the streaming frame for the positions of a checkpoint, `reads` what counts the
        rows of tables that it reads, and `again` its rows with another limit. Raises ConnectorError, and the
        errors of Spark.
        """

        def rows(frame: DataFrame) -> contextlib.nullcontext[Callable[[Mapping[str, Any]], DataFrame]]:
            return contextlib.nullcontext(lambda _: frame)

        self.start_set(begun_at, step, [(step, target, None)], rows, reads, again=again)

    def start_set(
        self,
        begun_at: Callable[[Record], DataFrame],
        begin: Mapping[str, Any],
        inserts: Sequence[tuple[Mapping[str, Any], Target, list[str] | None]],
        rows: RowsOfBatch,
        reads: Reads,
        *,
        again: RowsAgain,
    ) -> None:
        """Start the one query of a statement set; each INSERT comes with its target and its columns.

        `begun_at` returns the stream that all INSERTs read, and `rows` their rows of a micro-batch of it;
        without columns, an INSERT has those of the stream. Raises the same errors.
        """
        if not self._plan.get("checkpoints"):
            raise ConnectorError(NO_CHECKPOINTS)
        steps = [step for step, _, _ in inserts]
        folder = self.names.folder(begin)
        with contextlib.ExitStack() as stack:
            checkpoint = Checkpoint(
                self._session, f"{self._plan['checkpoints']}/{folder}", self._plan.get("checkpoint")
            )
            targets = tuple(step["target"] for step in steps)
            meant = fingerprint(self._plan, self.names.meant(steps))
            record = stack.enter_context(
                checkpoint.opened(meant, targets if begin["kind"] == "begin_set" else ())
            )
            if not record.run_key:  # else a job has begun it anew on purpose
                checkpoint.check_not_moved(targets, self.names.all_folders())
            checkpoint.identify(record, self._identities(record))
            frame, limit = self._limited(begun_at(record), record, checkpoint, again)
            query = StreamQuery(
                [
                    StreamInsert(
                        step,
                        target,
                        visible(frame) if columns is None else columns,
                        self._writer(record.stream + self.names.mark(step), step, target),
                    )
                    for step, target, columns in inserts
                ],
                rows,
                reads(frame, folder, record.stream),
                self._start_of(checkpoint.url, folder, steps),
                limit,
            )
            shown = {self.names.shown(each.step): each.writer for each in query.inserts}
            self._triggers.add(self._name(steps, folder), shown, limit.tuner if limit else None)
            if not self._control.stopping.is_set():
                query.begin(frame)
                query.checkpoint = stack.pop_all()
        self._queries.append(query)

    def _writer(self, stream: str, step: Mapping[str, Any], target: Target) -> BatchWriter:
        table = target.table
        key = tuple(table.get("primary_key", ()))
        request = partial(WriteRequest, primary_key=key, target=table["name"], pushes=self.pushes)
        writer = BatchWriter(target.sink, target.options, stream, target.mode, request)
        if table["location"]:  # two queries never create or change one target at the same time
            place = comparable(table["location"])
            found = self._places.setdefault(place, (threading.Lock(), threading.Event()))
            writer.place_lock, writer.has_begun = found
            shared = SharedTarget(self._session, self._others(step, place))
            writer.others_have_begun = partial(shared.has_rows, target.sink, target.options)
        return writer

    def _others(self, step: Mapping[str, Any], place: str) -> list[tuple[Checkpoint, str]]:
        """The other INSERTs that write to a place: the checkpoints of their queries, and their marks."""
        found, tables = list[tuple[Checkpoint, str]](), dict[str, str]()
        for each in self._plan["steps"]:
            if each["kind"] == "table":
                tables[each["name"].lower()] = comparable(each["location"]) if each["location"] else ""
            elif each["kind"] == "insert" and each is not step and tables[each["target"].lower()] == place:
                url = f"{self._plan['checkpoints']}/{self.names.folder(each)}"
                checkpoint = Checkpoint(self._session, url, self._plan.get("checkpoint"))
                found.append((checkpoint, self.names.mark(each)))
        return found

    def _limited(
        self, frame: DataFrame, record: Record, checkpoint: Checkpoint, again: RowsAgain
    ) -> tuple[DataFrame, ChangingLimit | None]:
        """The frame with the limit of its micro-batches, and how it changes; None if it cannot."""
        if not self.run_at_once or (found := again(frame)) is None:
            return frame, None
        begin, rows = found
        tuner = LimitTuner(Tuning.of(self._plan), begin, record.limit, self.pushes.adjustment)
        if tuner.limit != begin:
            frame = rows(tuner.limit, has_begun=False)
        return frame, ChangingLimit(tuner, partial(rows, has_begun=True), checkpoint.keep_limit)

    def _name(self, steps: Sequence[Mapping[str, Any]], folder: str) -> str:
        return self.names.shown(steps[0]) if len(steps) == 1 else folder

    def _start_of(
        self, url: str, folder: str, steps: Sequence[Mapping[str, Any]]
    ) -> Callable[[DataFrame, Callable[[DataFrame, int], None]], StreamingQuery]:
        name = self._name(steps, folder)

        def start(frame: DataFrame, write: Callable[[DataFrame, int], None]) -> StreamingQuery:
            session = frame.sparkSession
            if session not in self._watched:
                self._watched.append(session)
                session.conf.set(IDLE_INTERVAL, str(IDLE_MILLISECONDS))
                session.streams.addListener(self._triggers)
            writer = frame.writeStream.queryName(name).option("checkpointLocation", url)
            if self.run_at_once:
                writer = writer.trigger(processingTime=f"{self._plan['trigger_ms']} milliseconds")
            else:
                writer = writer.trigger(availableNow=True)
            with without_csv_pushdown(session, frame):
                return writer.foreachBatch(write).start()

        return start

    def wait(self, *, ending: bool = False) -> list[StreamQuery]:
        """Wait for the end of all queries, and return them in their order.

        They end after their current micro-batch if one of them fails, the driver asks for it, or with
        `ending`.
        """
        while running := [each for each in self._queries if each.query]:
            if ending or self._control.stopping.is_set() or any(each.failure for each in self._queries):
                for each in running:
                    each.end()
            first = running[0].query
            with contextlib.suppress(*SPARK_ERRORS):  # the look sees them
                if first is not None:
                    first.awaitTermination(_LOOK_SECONDS)  # type: ignore[arg-type]  # it takes parts of seconds
            for each in running:
                each.look(self.pushes.adjustment)
        ended, self._queries = self._queries, []
        return ended

    def close(self) -> None:
        """Interrupt what still runs, and end the reports."""
        for each in self._queries:
            each.stop()
        while self._watched:
            self._watched.pop().streams.removeListener(self._triggers)
