"""The history of a job name: a ring of its last runs, each with its outcome, settings and measurements."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from loguru import logger

from orchestrator.history.hours import HOUR_SECONDS, StreamTotals, key_of, with_news, without_old_hours
from orchestrator.history.key import Key
from orchestrator.model.errors import CorruptHistory, HistoryNotFound
from orchestrator.model.job import JobError
from orchestrator.model.paths import Nodes
from orchestrator.model.spark import Spark
from orchestrator.model.times import no_later, seconds_between
from queues import (
    Conflict,
    Create,
    NodeData,
    Operation,
    OutcomeUnknown,
    QueueError,
    Session,
    Set,
    check_id,
    commit_many,
    decode,
    encode,
)
from spark_runner.protocol.attempt import Attempt, AttemptState
from spark_runner.protocol.sizing import MAX_VALUE_CHARACTERS, RESOURCES, SIZING

MAX_RUN_BYTES = 3_800  # fifty of them and a name make less than 200 KiB

_MAX_MESSAGE_CHARACTERS = 300  # the attempt stores the whole message
_MAX_TEXT_CHARACTERS = 120


def is_run(attempt: Attempt) -> bool:
    """Whether an ended attempt belongs in the history: its driver started, or its submission failed finally.

    An attempt that was closed before its driver started, to be retried or cancelled, is not a run.
    """
    if attempt.state.is_open:
        return False
    failed = attempt.document.get("error") is not None and not attempt.is_passing
    return bool(attempt.incarnation) or failed


def run_of(
    attempt: Attempt,
    *,
    job_id: str,
    spark: Spark,
    error: JobError | None,
    key: Key,
    known_input: float = 0,
    tuned: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The entry of an ended attempt, at most MAX_RUN_BYTES as JSON.

    `spark`: as definition and pool ask for it; `error`: why it did not succeed; `known_input`: the size of
    its input by the definition; `tuned`: the properties that the tuning set. A run of error class `memory`
    shows that it needs more memory than it had, not how much; `short_of` names the memory where it is known.
    """
    document = attempt.document
    metrics = document.get("metrics")
    metrics = dict(metrics) if isinstance(metrics, dict) else {}
    in_force = metrics.pop("settings", None)
    entry: dict[str, Any] = {
        "run": attempt.run,
        "job": job_id,
        "attempt": document.get("attempt"),
        "state": attempt.state.value,
        "class": None,
        "exit_code": document.get("exit_code"),
        "started": document.get("started"),
        # By the clock of the driver's host: a time of the future would stay the last one of the ring.
        "ended": no_later(document.get("ended"), attempt.changed_ms),
        "seconds": seconds_between(document.get("started"), document.get("ended")),
        "application_id": document.get("application_id"),
        "input_bytes": metrics.get("input_bytes"),
        "settings": in_force if isinstance(in_force, dict) else _settings(spark, tuned or {}),
        "asked": asked_by(spark),
        "code": key.code,
        "parameters": key.parameters,
    }
    if attempt.state is not AttemptState.SUCCEEDED:
        entry["class"] = "killed" if error is None else error.error_class
    if error is not None:
        entry |= {"type": error.type, "message": error.message[:_MAX_MESSAGE_CHARACTERS]}
        if error.short_of is not None:
            entry["short_of"] = error.short_of
    if (totals := StreamTotals.of(document)) is not None:
        entry |= totals.to_json()
    if known_input:
        entry["input"] = known_input
    entry["metrics"] = metrics
    return _fitting(entry)


def asked_by(spark: Spark) -> dict[str, str]:
    """What definition and pool ask for of the resources that the tuning may change."""
    given = spark.properties
    return {name: given[name][:MAX_VALUE_CHARACTERS] for name in RESOURCES if name in given}


def _settings(spark: Spark, tuned: Mapping[str, str]) -> dict[str, str]:
    """The requested settings, for a driver that reported none."""
    target = spark.target
    named = {"spark.master": target.master, "spark.submit.deployMode": target.deploy_mode}
    given = {**spark.properties, **tuned, **named}
    return {name: given[name][:MAX_VALUE_CHARACTERS] for name in SIZING if name in given}


def _fitting(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry unchanged if it is small enough; otherwise without the fields that a driver may inflate."""
    if _size(entry) <= MAX_RUN_BYTES:
        return entry
    entry = {**entry, "metrics": {}, "left_out": "its measurements are too large"}
    if _size(entry) <= MAX_RUN_BYTES:
        return entry
    return {
        name: value[:_MAX_TEXT_CHARACTERS] if isinstance(value, str) else value
        for name, value in (
            entry | {"settings": {}, "asked": {}, "input_bytes": None, "exit_code": None}
        ).items()
    }


def _size(entry: dict[str, Any]) -> int:
    return len(encode(entry))


MAX_RUNS = 50
MAX_RING_BYTES = 200 * 1024

Run = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ring:
    """Runs of one name in the order of their ends, evolved by copy."""

    name: str
    runs: Sequence[Run] = ()

    @classmethod
    def decode(cls, name: str, data: bytes) -> "Ring":
        """The ring in these bytes; raises ValueError for other bytes."""
        runs = decode(data).get("runs")
        if not isinstance(runs, list) or not all(isinstance(run, dict) and "run" in run for run in runs):
            message = "it holds no list of runs"
            raise ValueError(message)
        return cls(name, runs)

    def encode(self) -> bytes:
        """The bytes of the node, as JSON that zkCli shows too."""
        return encode({"name": self.name, "runs": list(self.runs)})

    def with_run(self, run: Run) -> "Ring":
        """The ring with this run in order, each run and each hour of it once; itself if nothing changes.

        A run that ended before all runs of a full ring was dropped before, and is not stored again.
        """
        key = key_of(run)
        if any(key_of(each) == key for each in self.runs):
            return self
        added = with_news(run, self.runs)
        if added is None:
            return self
        runs = without_old_hours(sorted([*self.runs, added], key=_order))[-MAX_RUNS:]
        if all(each is not added for each in runs):
            return self
        ring = Ring(self.name, runs)
        while len(ring.runs) > 1 and len(ring.encode()) > MAX_RING_BYTES:
            ring = Ring(self.name, ring.runs[1:])
        return ring


def _order(run: Run) -> tuple[str, str]:
    return str(run.get("ended") or ""), str(run["run"])


_TRIES = 20  # each failure means that another worker was faster with a run of the same name
_PAUSE_SECONDS = 0.05  # at most; random, so that workers do not collide again

_Batch = dict[str, list[tuple[Run, "Future[None]"]]]  # by name


class History:
    """Rings of runs by name. Safe to use from several threads.

    Runs that several threads record at the same time are written together, in one multi.
    """

    def __init__(self, session: Session, nodes: Nodes, *, hour_seconds: float = HOUR_SECONDS) -> None:
        """`hour_seconds`: the time that an entry of a running stream covers."""
        self._session, self._nodes = session, nodes
        self.hour_seconds = hour_seconds
        self._guard, self._writing = threading.Lock(), threading.Lock()
        self._waiting: _Batch = defaultdict(list)
        self._has_folder = False

    def read(self, name: str, get: Callable[[str], NodeData | None] | None = None) -> Sequence[Run]:
        """The last runs of a name, the latest last; raises HistoryNotFound, CorruptHistory.

        `get` returns the node, where the caller has read it already.
        """
        path = self._nodes.history(check_id(name))
        found = (get or self._session.get)(path)
        if found is None:
            raise HistoryNotFound(name)
        try:
            return Ring.decode(name, found[0]).runs
        except ValueError as error:
            raise CorruptHistory(name, path, str(error)) from error

    def record(self, name: str, run: Run) -> None:
        """Store a run in the ring of its name; the ring holds it once, however often it is recorded.

        Raises the errors of reads and writes, and OutcomeUnknown if other workers were faster every time.
        """
        outcome: Future[None] = Future()
        with self._guard:
            self._waiting[name].append((run, outcome))
        with self._writing:
            if not outcome.done():  # otherwise the thread before has written this run too
                with self._guard:
                    batch, self._waiting = self._waiting, defaultdict(list)
                self._write(batch)
        outcome.result()

    def _write(self, batch: _Batch) -> None:
        """Write all of them; each future gets its outcome."""
        try:
            for _ in range(_TRIES):
                batch = self._try_to_write(batch)
                if not batch:
                    return
                time.sleep(random.uniform(0, _PAUSE_SECONDS))  # noqa: S311 - not for security
            raise OutcomeUnknown(  # noqa: TRY301 - passed on below
                "other workers were faster every time to write the history of " + ", ".join(batch)
            )
        except BaseException as error:  # noqa: BLE001 - each waiting thread has to get its error
            _resolve(batch, error)

    def _try_to_write(self, batch: _Batch) -> _Batch:
        """Write once; returns the names for which another worker was faster."""
        if not self._has_folder:
            self._session.ensure_path(self._nodes.histories)
            self._has_folder = True
        names = list(batch)
        found = self._session.get_many([self._nodes.history(name) for name in names])
        changes = dict[str, Operation]()
        for name, node in zip(names, found, strict=True):
            before = self._ring(name, node)
            after = before
            for run, _ in batch[name]:
                after = after.with_run(run)
            if after is before:
                _resolve({name: batch[name]})
            elif node is None:
                changes[name] = Create(self._nodes.history(name), after.encode())
            else:
                changes[name] = Set(self._nodes.history(name), after.encode(), node[1].version)
        refusals = commit_many(self._session, [(change,) for change in changes.values()])
        left: _Batch = {}
        for name, refused in zip(changes, refusals, strict=True):
            if isinstance(refused, Conflict):  # or the reply to this multi was lost: the next read decides
                left[name] = batch[name]
                self._has_folder = False  # the folder may have been removed
            else:
                _resolve({name: batch[name]}, refused)
        return left

    def _ring(self, name: str, node: NodeData | None) -> Ring:
        if node is None:
            return Ring(name)
        try:
            return Ring.decode(name, node[0])
        except ValueError as error:
            logger.warning("{} is not a history and is replaced: {}", self._nodes.history(name), error)
            return Ring(name)


def _resolve(batch: _Batch, error: BaseException | QueueError | None = None) -> None:
    for runs in batch.values():
        for _, future in runs:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
