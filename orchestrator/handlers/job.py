"""A job in the hands of a worker: what its handlers may look at."""

import json
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from loguru import logger

from orchestrator.admission.declined import Declined
from orchestrator.admission.guard import Guard
from orchestrator.admission.hosts import Hosts
from orchestrator.admission.slots import Slots
from orchestrator.archive.base import Archive
from orchestrator.callbacks.callback import Callbacks
from orchestrator.callbacks.delivery import Delivery
from orchestrator.handlers.warnings import is_other_kind, recordable
from orchestrator.history.history import History
from orchestrator.hooks import Hooks
from orchestrator.logs.record.redaction import REDACTOR, secrets_in
from orchestrator.models.definition import Definition
from orchestrator.models.job import JobState
from orchestrator.models.limits import Limits
from orchestrator.models.spark import Spark
from queues.claim import Claim
from queues.clock import EnsembleClock
from queues.documents import decode, timestamp
from queues.errors import CorruptRecord
from queues.names import LOW, Layout
from queues.operations import Delete
from queues.session import Session, Wake, boottime
from spark_runner.attempt import Attempt, attempt_path, earlier_path
from spark_runner.errors import RefusedSubmission
from spark_runner.runners.base import Place, Runner, RunState, Submission
from spark_runner.runners.registry import Runners

_PATIENCE_SECONDS = 30.0  # a driver takes so long to start on a cluster that has room

TIME_LIMIT = "timeout.run"
"""Why a worker made a stop node: for a driver that is out of its reach and has run for too long."""


@dataclass(frozen=True, slots=True)
class Context:
    """What all handlers of one worker share."""

    session: Session
    layout: Layout
    clock: EnsembleClock
    runners: Runners
    kill_grace: float  # seconds between TERM and KILL
    slots: Slots
    declined: Declined  # jobs in accept that cannot be begun now
    elsewhere: Declined  # jobs in running that are for the workers of another host
    hosts: Hosts
    limits: Callable[[], Limits] = Limits
    guard: Guard | None = None  # of this host; None: whatever it can bear
    spark_of: Callable[[str, Spark], Spark] = lambda _pool, own: own  # with what is empty as for the pool
    hooks: Hooks = field(default_factory=Hooks)
    callbacks: Callbacks = field(default_factory=Callbacks)
    draining: threading.Event = field(default_factory=threading.Event)
    history: History | None = None
    archive: Archive | None = None  # None: jobs are removed without being archived


@dataclass(slots=True)
class Watch:
    """What a worker remembers of a running attempt while it holds the job; no verdict rests on it."""

    attempt: int
    runner: Runner | None = None  # asked in bulk while the job waits
    run: str = ""
    submitted: int = 0  # times, by this worker
    application_id: str | None = None  # as `alive` told it; in the record when that is written anyway
    polls: int = 0
    unknown: int = 0  # answers in a row that told nothing
    unknown_answers: int = 0  # answers that told nothing, of all that were asked for
    unknown_reason: str = ""
    waits_since: float | None = None  # monotonic; a driver or its executors do not come to run since then
    waits_for: str = ""  # why, once that has lasted for a while
    waited_for: str = ""  # the same when a look last took note of it
    told_at: float = -math.inf  # monotonic; when this worker last wrote a warning
    last_seen: str | None = None  # when the backend answered last
    answer: frozenset[tuple[str, RunState]] = frozenset()
    absent_since: float | None = None  # CLOCK_BOOTTIME; `alive` has been away since then
    progress: int = -1  # when `alive` was last written, by the ensemble's clock
    progress_since: float = field(default_factory=boottime)  # CLOCK_BOOTTIME
    version: int = -1  # of the attempt, and since when it has that: see `age`
    version_since: float = 0.0  # CLOCK_BOOTTIME
    settling_since: float | None = None  # monotonic; the attempt has ended, its processes have not
    calm_until: float = 0.0  # monotonic; a silent backend is no new warning before
    ends_driver: bool = False  # its next look ends the driver, which may take long
    name_until: float | None = None  # monotonic; until then an event waits for the name of the application

    def seen(self) -> dict[str, object]:
        """What the record says of it, when that is written anyway."""
        seen: dict[str, object] = {
            "last_seen": self.last_seen,
            "polls": self.polls,
            "unknown_answers": self.unknown_answers,
        }
        if self.application_id is not None:
            seen["application_id"] = self.application_id
        return seen

    @property
    def is_out_of_reach(self) -> bool:
        """Whether its driver was found to be on another host."""
        return bool(self.run) and self.runner is None


class HeldJob:
    """A claimed job with its state, its definition and its attempts; looked at by one thread at a time."""

    def __init__(
        self, claim: Claim, context: Context, *, on_wake: Callable[["HeldJob"], None] = lambda _job: None
    ) -> None:
        self.claim = claim
        self.context = context
        self.refusals = 0  # of steps of ours in a row, because somebody was faster
        self.remembered = 0  # the attempt that was noted in the history
        self.begun = 0  # the attempt that was announced under this claim: nobody else has submitted it
        self.watch = Watch(0)
        self.delivery: Delivery | None = None  # of the first event in the outbox
        self.next_try = 0.0  # monotonic; to tell it, after a try that failed
        self._on_wake = on_wake
        self._state: tuple[int, JobState] | None = None

    def give_back(self) -> None:
        """Nothing is promised to its driver any more: it can be seen by now, or does not start here."""
        if self.context.guard is not None:
            self.context.guard.started(self.run_key)

    def wake(self) -> None:
        """Look at the job again: something may have changed."""
        self._on_wake(self)

    def wake_if_held(self) -> bool:
        """Look at the job again unless it is not in hand any more; whether it is."""
        self.wake()
        return self.claim.held

    @property
    def id(self) -> str:
        """The job's id."""
        return self.claim.id

    @property
    def run_key(self) -> str:
        """The name of this very submission of the job, which another job of the same id does not have."""
        return self.claim.record.run_key

    @property
    def state(self) -> JobState:
        """The payload of the record; raises ValidationError when it is no job's."""
        known = self._state
        if known is None or known[0] != self.claim.version:
            known = self._state = (self.claim.version, JobState.model_validate(self.claim.record.payload))
        return known[1]

    @property
    def record_path(self) -> str:
        """The node of the record."""
        return self.context.layout.record(self.id)

    @property
    def stop_path(self) -> str:
        """The node that a request to stop makes."""
        return self.context.layout.stop(self.claim.record.pool, self.id)

    @cached_property
    def definition(self) -> Definition:
        """The definition, read once; raises CorruptRecord when it cannot be read."""
        found = self.context.session.get(f"{self.record_path}/definition")
        if found is None:
            raise CorruptRecord(self.id, "it has no definition")
        definition = Definition.model_validate(json.loads(found[0]))
        # What this worker says of the job may quote them.
        REDACTOR.add(secrets_in({**definition.variables, **definition.spark.conf}))
        return definition

    @cached_property
    def spark(self) -> Spark:
        """Where and how it runs: as its definition says, else as this worker does for its pool.

        Raises RefusedSubmission where the two do not go together.
        """
        pool = self.claim.record.pool.removesuffix(LOW)
        try:
            return self.context.spark_of(pool, self.definition.spark)
        except ValueError as error:
            raise RefusedSubmission(f"the Spark defaults of pool {pool} do not fit: {error}") from error

    # ------------------------------------------------------------------ attempt
    def attempt(self) -> Attempt | None:
        """The last attempt as it is now, None before the first; the job is woken when an open one changes.

        It is read twice for that: a watch on one that has ended would stay until the job is removed.
        """
        attempt = self.last_attempt()
        if attempt is not None and attempt.state.is_open:
            attempt = self.last_attempt(self.wake)
            if attempt is not None and not attempt.state.is_open:  # since the first look, a moment ago
                self.context.session.forget(attempt.path, self.wake)
        return attempt

    def last_attempt(self, wake: Wake | None = None) -> Attempt | None:
        """The same without a look for changes, but for `wake`; raises CorruptRecord where it is missing."""
        number = self.state.attempt
        if number == 0:
            return None
        path, session = attempt_path(self.record_path, self.run_key, number), self.context.session
        attempt = Attempt.read(session, path, wake)
        if attempt is None:
            attempt = Attempt.read(session, earlier_path(self.record_path, number), wake)
        if attempt is None or attempt.document.get("run_key") != self.run_key:
            raise CorruptRecord(self.id, f"its attempt {number} is missing")
        return attempt

    def watching(self) -> Watch:
        """What is remembered of the present attempt."""
        state = self.state
        if self.watch.attempt != state.attempt:
            self.watch = Watch(
                state.attempt,
                polls=state.polls,
                unknown_answers=state.unknown_answers,
                last_seen=state.last_seen,
            )
        return self.watch

    def attempt_document(self) -> Mapping[str, Any] | None:
        """What stands in the node of the last attempt; None where that can be read by nobody."""
        if self.state.attempt == 0:
            return None
        return self._document(attempt_path(self.record_path, self.run_key, self.state.attempt))

    def alive(self) -> Mapping[str, Any]:
        """What the driver of the last attempt shows of itself now; empty without one."""
        path = attempt_path(self.record_path, self.run_key, self.state.attempt)
        return self._document(f"{path}/alive") or {}

    def _document(self, path: str) -> Mapping[str, Any] | None:
        found = self.context.session.get(path)
        try:
            return decode(found[0]) if found is not None and found[0] else None
        except ValueError:
            return None

    def place(self, attempt: Attempt) -> Place:
        """Where an attempt was submitted."""
        return Place(**attempt.document["place"])

    def submissions(self, runner: Runner, run: str) -> list[Submission] | None:
        """Every submission of a run as its backend sees it now; None when it does not answer.

        Whatever a backend raises is no fault of the job: what comes of a long silence is for its handler.
        """
        try:
            return runner.find(run)
        except Exception as error:  # noqa: BLE001 - libraries of backends raise what they like
            logger.debug("{}: the backend {} does not answer: {}", self.id, runner.backend, error)
            self.watching().unknown_reason = recordable(str(error))
            return None

    def note_poll(self, submissions: Sequence[Submission] | None, reason: str = "") -> None:
        """Remember what a backend said, None when it said nothing; the job is woken when that is news."""
        watch, status = self.watch, self.state.status
        watch.polls += 1
        if submissions is None or any(found.state is RunState.UNKNOWN for found in submissions):
            watch.unknown += 1
            watch.unknown_answers += 1
            reason = reason or next(
                (found.detail for found in submissions or () if found.state is RunState.UNKNOWN), ""
            )
            watch.unknown_reason = recordable(reason)
            if watch.unknown == self.context.limits().warn_after:
                self.wake()
            return
        was_unknown, watch.unknown = watch.unknown, 0
        watch.last_seen = timestamp()
        answer = frozenset((found.incarnation, found.state) for found in submissions)
        self._note_wait(submissions)
        is_news = answer != watch.answer or is_other_kind(watch.waits_for, watch.waited_for)
        if is_news or (was_unknown and status is status.RUNNING_WARN):
            watch.answer = answer
            self.wake()

    def _note_wait(self, submissions: Sequence[Submission]) -> None:
        """A cluster always says something while it starts a driver; what lasts is for people to know."""
        watch, now = self.watch, time.monotonic()
        details = (found.detail for found in submissions if found.state is RunState.RUNNING)
        words = recordable(next(filter(None, details), ""))
        if not words:
            watch.waits_since = None
        elif watch.waits_since is None:
            watch.waits_since = now
        lasts = watch.waits_since is not None and now - watch.waits_since >= _PATIENCE_SECONDS
        watch.waits_for = words if lasts else ""

    # ------------------------------------------------------------------ stop
    def stop_request(self) -> tuple[Delete, bool] | None:
        """The removal of the stop node, and whether it is meant for this very job; None without a node.

        Raises ClaimLost when there is none and the job was claimed for one alone.
        """
        found = self.context.session.get(self.stop_path)  # no watch: it would stay for ever
        if found is None:
            if self.claim.how.for_stop:
                raise self.claim.void()
            return None
        # A node of an earlier job of the same id carries another run key.
        meant = self.run_key.encode() in found[0] and not _is_time_limit(found[0])
        return Delete(self.stop_path, found[1].version), meant

    def is_stopped(self) -> bool:
        """Whether somebody asked to stop this job."""
        request = self.stop_request()
        return request is not None and request[1]


def _is_time_limit(data: bytes) -> bool:
    try:
        return decode(data).get("reason") == TIME_LIMIT
    except ValueError:
        return False
