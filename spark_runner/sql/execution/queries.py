"""The streaming queries of a script, from their start to their end."""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_runner.connectors.base import Sink
from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.checkpoints.record import Record
from spark_runner.sql.execution.checkpoints import Checkpoint, folder_name
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.fingerprints import fingerprint
from spark_runner.sql.execution.judgement import visible
from spark_runner.sql.execution.shared_targets import SharedTarget
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.execution.streaming import MicroBatches
from spark_runner.sql.execution.triggers import IDLE_INTERVAL, IDLE_MILLISECONDS, Triggers
from spark_runner.sql.locations import comparable

NO_CHECKPOINTS = (
    "a stream needs a folder for its progress that outlives its driver; an operator can set `checkpoints`"
)
_LOOK_SECONDS = 0.2  # between two looks at the queries


@dataclass(frozen=True)
class Target:
    """The table that a query writes, and how; `mode` is that of the first micro-batch of a stream."""

    table: Mapping[str, Any]
    options: Mapping[str, Any]
    sink: Sink
    mode: str


@dataclass
class StreamInsert:
    """One INSERT as a streaming query."""

    step: Mapping[str, Any]
    target: Target
    columns: list[str]
    batches: MicroBatches
    checkpoint: contextlib.ExitStack  # holds its lock until the end
    query: StreamingQuery | None  # None after its end
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    failure: Exception | None = None

    def look(self) -> None:
        """Stop the query if it was asked to end and may; keep what has become of an ended one."""
        query, batches = self.query, self.batches
        if query is None:
            return
        if query.isActive:
            # In this order: after the last write, the trigger is active until Spark has counted the batch.
            if batches.has_ended and (batches.is_waiting or not query.status["isTriggerActive"]):
                query.stop()
                self._end(batches.failure)  # a batch may have failed between the two looks
            return
        try:
            query.awaitTermination()
        except SPARK_ERRORS as error:
            self._end(batches.failure or error)
        else:
            self._end(None)

    def stop(self) -> None:
        """Stop the query, also within a micro-batch, which the next run then repeats."""
        if self.query is not None:
            self.query.stop()
            self._end(None)

    def _end(self, failure: Exception | None) -> None:
        self.query, self.failure = None, failure
        self.seconds = round(time.monotonic() - self.started, 3)
        self.checkpoint.close()


def _name(step: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> str:
    """What tells the query of this step from others of its table; empty for the first INSERT."""
    number = sum(each["kind"] == "insert" and each["target"] == step["target"] for each in before)
    return "" if number == 1 else str(number)


class StreamInserts:
    """Starts the queries of a script, and waits for their ends."""

    def __init__(self, session: SparkSession, plan: Mapping[str, Any], control: StreamControl) -> None:
        self._session, self._plan, self._control = session, plan, control
        self.run_at_once = plan.get("mode") == "streaming"  # else a query reads what is there, and ends
        self._inserts: list[StreamInsert] = []
        self._places: dict[str, tuple[threading.Lock, threading.Event]] = {}
        self._triggers: Triggers | None = None

    def start(self, begun_at: Callable[[Record], DataFrame], step: Mapping[str, Any], target: Target) -> None:
        """Start the query of an INSERT.

        `begun_at` returns the streaming frame for the positions of a checkpoint. Raises ConnectorError, and
        the errors of Spark.
        """
        if not self._plan.get("checkpoints"):
            raise ConnectorError(NO_CHECKPOINTS)
        table, steps = target.table, self._plan["steps"]
        before = steps[: steps.index(step) + 1]
        name = _name(step, before)
        url = f"{self._plan['checkpoints']}/{folder_name(table['name'], name)}"
        meant = [each for each in before if each["kind"] != "insert" or each is step]
        with contextlib.ExitStack() as stack:
            checkpoint = Checkpoint(self._session, url, self._plan.get("checkpoint"))
            record = stack.enter_context(checkpoint.opened(fingerprint(self._plan, meant)))
            frame = begun_at(record)
            key = tuple(table.get("primary_key", ()))
            batches = MicroBatches(target.sink, target.options, record.stream, target.mode, key)
            if table["location"]:  # two queries never create or change one target at the same time
                place = comparable(table["location"])
                found = self._places.setdefault(place, (threading.Lock(), threading.Event()))
                batches.place_lock, batches.has_begun = found
                shared = SharedTarget(self._session, self._others(step, place))
                batches.others_have_begun = partial(shared.has_rows, target.sink, target.options)
            shown = table["name"].replace(",", "%2C")  # as in the name of the folder
            shown = f"{shown},{name}" if name else shown
            query = None if self._control.stopping.is_set() else self._started(frame, shown, url, batches)
            held = contextlib.ExitStack() if query is None else stack.pop_all()
            insert = StreamInsert(step, target, visible(frame), batches, held, query)
        self._inserts.append(insert)

    def _others(self, step: Mapping[str, Any], place: str) -> list[Checkpoint]:
        """The checkpoints of the other INSERTs that write to a place."""
        steps, found, tables = self._plan["steps"], list[Checkpoint](), dict[str, Mapping[str, Any]]()
        for index, each in enumerate(steps):
            if each["kind"] == "table":
                tables[each["name"].lower()] = each
            elif each["kind"] == "insert" and each is not step:
                table = tables[each["target"].lower()]
                if table["location"] and comparable(table["location"]) == place:
                    name = folder_name(table["name"], _name(each, steps[: index + 1]))
                    url = f"{self._plan['checkpoints']}/{name}"
                    found.append(Checkpoint(self._session, url, self._plan.get("checkpoint")))
        return found

    def _started(self, frame: DataFrame, name: str, url: str, batches: MicroBatches) -> StreamingQuery:
        if self._triggers is None:
            self._triggers = Triggers(self._control.triggered)
            self._session.conf.set(IDLE_INTERVAL, str(IDLE_MILLISECONDS))
            self._session.streams.addListener(self._triggers)
        self._triggers.add(name, batches)
        writer = frame.writeStream.queryName(name).option("checkpointLocation", url)
        if self.run_at_once:
            writer = writer.trigger(processingTime=f"{self._plan['trigger_ms']} milliseconds")
        else:
            writer = writer.trigger(availableNow=True)
        return writer.foreachBatch(batches.write).start()

    def wait(self, *, ending: bool = False) -> list[StreamInsert]:
        """Wait for the end of all queries, and return them in their order.

        They end after their current micro-batch if one of them fails, the driver asks for it, or with
        `ending`.
        """
        while running := [each for each in self._inserts if each.query]:
            if ending or self._control.stopping.is_set() or any(each.failure for each in self._inserts):
                for each in running:
                    each.batches.end()
            first = running[0].query
            with contextlib.suppress(*SPARK_ERRORS):  # the look sees them
                if first is not None:
                    first.awaitTermination(_LOOK_SECONDS)  # type: ignore[arg-type]  # it takes parts of seconds
            for each in running:
                each.look()
        ended, self._inserts = self._inserts, []
        return ended

    def close(self) -> None:
        """Interrupt what still runs, and end the reports."""
        for each in self._inserts:
            each.stop()
        if self._triggers is not None:
            self._session.streams.removeListener(self._triggers)
            self._triggers = None
