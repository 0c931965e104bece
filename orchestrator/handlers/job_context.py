"""The context of one job: its claim, its state, its attempts, and the shared parts of the worker."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.callbacks.callback import CallbackDelivery
from orchestrator.handlers.attempt_monitor import AttemptMonitor, BackendView
from orchestrator.handlers.definition_cache import definition_in
from orchestrator.handlers.read_ahead import ReadAhead
from orchestrator.handlers.worker_context import WorkerContext
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.model.act import Act
from orchestrator.model.definition import Definition
from orchestrator.model.job import JobState
from orchestrator.model.plan import Plan, decode_plan, plan_path
from orchestrator.model.spark import Spark
from orchestrator.model.stop_requests import TIME_LIMIT, act_in, is_time_limit, request_to_stop
from orchestrator.policy.rules import PolicyRefused
from orchestrator.tuning.resources import with_resources
from queues import (
    LOW_LANE_SUFFIX,
    AccessDenied,
    Acl,
    Claim,
    CorruptRecord,
    Delete,
    Login,
    Operation,
    Wake,
    decode,
    timestamp,
)
from spark_runner.protocol.attempt import VERSION_STARTED, Attempt, attempt_path, earlier_path
from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.protocol.stop_order import is_graceful
from spark_runner.runners.base import SubmissionPlace


class JobContext:
    """A claimed job with its state, its definition and its attempts; used by one thread at a time."""

    __slots__ = (  # a worker keeps thousands: each attribute takes 8 bytes instead of 50
        "__weakref__",
        "_calm_until",
        "_definition",
        "_look_seconds",
        "_on_wake",
        "_spark",
        "_state",
        "_watched",
        "attempt_version",
        "begun",
        "claim",
        "context",
        "delivery",
        "is_adopted",
        "is_followed",
        "login",
        "monitor",
        "next_try",
        "reads",
        "recorded_run",
        "stop_act",
        "stops_gracefully",
    )

    def __init__(
        self,
        claim: Claim,
        context: WorkerContext,
        *,
        on_wake: Callable[["JobContext"], None] = lambda _job: None,
    ) -> None:
        self.claim = claim
        self.context = context
        self.recorded_run = 0  # the attempt that the history has recorded
        self.begun = 0  # the attempt that this claim announced: no other worker has submitted it
        self.is_followed = False  # the running attempt was seen by this claim
        self.is_adopted = False  # another worker has begun that attempt
        self.login: Login | None = None  # of the driver of the attempt whose node contains its digest
        self.monitor = AttemptMonitor(0)
        self.delivery: CallbackDelivery | None = None  # of the first event in the outbox
        self.next_try = 0.0  # monotonic; to deliver that event after a failed try
        self.stop_act: Act | None = None  # the act of the stop request, once it was read
        self.stops_gracefully = False  # the stop request that was read last lets a micro-batch end
        self._on_wake = on_wake
        self._state: tuple[int, JobState] | None = None
        self._definition: Definition | None = None
        self._spark: Spark | None = None
        self.reads = ReadAhead(context.session)
        self._watched = ("", 0)  # the attempt with a watch, and the connection of the watch
        self.attempt_version = -1  # as it was read last
        self._look_seconds = 0.0  # between two looks while it is calm
        self._calm_until = 0.0  # monotonic

    def give_back(self) -> None:
        """Return the memory promised to its driver: the driver is visible by now, or does not start here."""
        if self.context.admission.guard is not None:
            self.context.admission.guard.started(self.run_key)

    def wake(self) -> None:
        """Call the handler again: something may have changed."""
        self._on_wake(self)

    def wake_if_held(self) -> bool:
        """Call the handler again if the job is still held; returns whether it is."""
        self.wake()
        return self.claim.held

    @property
    def id(self) -> str:
        """The job's id."""
        return self.claim.id

    @property
    def run_key(self) -> str:
        """The unique key of this job; another job with the same id has another one."""
        return self.claim.record.run_key

    @property
    def state(self) -> JobState:
        """The payload of the record; raises ValidationError when it is no JobState."""
        known = self._state
        if known is None or known[0] != self.claim.version:
            known = self._state = (self.claim.version, JobState.from_payload(self.claim.record.payload))
        return known[1]

    @property
    def record_path(self) -> str:
        """The node of the record."""
        return self.context.layout.record(self.id)

    @property
    def stop_path(self) -> str:
        """The node of a request to stop."""
        return self.context.layout.stop(self.claim.record.pool, self.id)

    @property
    def definition_path(self) -> str:
        """The node of the definition."""
        return f"{self.record_path}/definition"

    @property
    def definition(self) -> Definition:
        """The definition; raises CorruptRecord when it cannot be read."""
        known = self._definition
        if known is None:
            known = self._definition = self._read_definition()
        return known

    @property
    def has_definition(self) -> bool:
        """Whether the definition needs no read."""
        return self._definition is not None

    def _read_definition(self) -> Definition:
        found = self.reads.get(self.definition_path)
        if found is None:
            raise CorruptRecord(self.id, "it has no definition")
        try:
            definition, secrets = definition_in(found[0])
        except ValueError as error:
            raise CorruptRecord(self.id, f"its definition is damaged: {error}") from error
        REDACTOR.add_of_job(secrets)  # messages of this worker about the job may quote them
        return definition

    def plan(self) -> Plan | None:
        """The plan of its SQL script, None without one; raises DefinitionError when it cannot be read."""
        found = self.reads.get(plan_path(self.record_path)) if self.definition.script else None
        return None if found is None else decode_plan(found[0])

    @property
    def spark(self) -> Spark:
        """The Spark settings: from the definition, else the defaults of this worker for the pool.

        Raises RefusedSubmission where the two contradict each other, and where the policy forbids them;
        CorruptRecord when the definition cannot be read.
        """
        known = self._spark
        if known is None:
            known = self._spark = self._filled_spark()
        return known

    def _filled_spark(self) -> Spark:
        pool = self.claim.record.pool.removesuffix(LOW_LANE_SUFFIX)
        try:
            filled = self.context.rules.spark_of(pool, self.definition.spark)
        except ValueError as error:
            raise RefusedSubmission(f"the Spark defaults of pool {pool} do not fit: {error}") from error
        try:
            self.context.rules.policy.check(pool, self.definition, spark=filled)
        except PolicyRefused as error:
            raise RefusedSubmission(str(error)) from error
        return filled

    @property
    def sized_spark(self) -> Spark:
        """The same, with the resources that the tuning gave the last attempt; raises as `spark`."""
        return with_resources(self.spark, self.state.tuned)

    # ------------------------------------------------------------------ attempt
    @property
    def attempt_path(self) -> str:
        """The node of the last attempt, as this version names it."""
        return attempt_path(self.record_path, self.run_key, self.state.attempt)

    def attempt(self) -> Attempt | None:
        """The last attempt as it is now, None before the first; a change of an open one wakes the job.

        An open one is read again for its watch, unless it has one: a watch on an ended attempt would stay
        until the job is removed.
        """
        attempt, connection = self.last_attempt(), self.context.session.connections
        if attempt is None or not attempt.state.is_open or self._watched == (attempt.path, connection):
            return attempt
        self._watched = (attempt.path, connection)  # first: the watch may fire before its read returns
        try:
            attempt = self.last_attempt(self.attempt_changed)
        except BaseException:
            self._watched = ("", 0)
            raise
        if attempt is not None:
            self.reads.drop(attempt.alive)  # its driver may have started since
            if not attempt.state.is_open:  # it has ended since the first read
                self.context.session.forget(attempt.path, self.attempt_changed)
        return attempt

    @property
    def watched_paths(self) -> tuple[str, str, str] | None:
        """The nodes whose changes need a handler: the stop request, the last attempt and its `alive`.

        None where no watch would report a change of the attempt.
        """
        path, connection = self._watched
        if not path or connection != self.context.session.connections:
            return None
        return self.stop_path, path, f"{path}/alive"

    def note_calm(self, look_seconds: float, calm_seconds: float) -> None:
        """Record for how long the job needs its handler only if one of its nodes changes; 0 = not at all."""
        self._look_seconds, self._calm_until = look_seconds, time.monotonic() + calm_seconds
        if calm_seconds > 0:  # made anew when they are needed, perhaps in hours
            self._state = self._definition = self._spark = None

    def calm_seconds(self) -> float:
        """Seconds until the next look at the job while it is calm; zero or less when it needs its handler."""
        return min(self._look_seconds, self._calm_until - time.monotonic())

    def attempt_changed(self) -> None:
        """Call the handler again; the watch on the last attempt is used up."""
        self._watched = ("", 0)
        self.wake()

    def last_attempt(self, wake: Wake | None = None) -> Attempt | None:
        """The last attempt, with `wake` as its only watch; raises CorruptRecord where it is missing."""
        number = self.state.attempt
        if number == 0:
            return None
        path, session = self.attempt_path, self.context.session
        attempt = Attempt.watched(session, path, wake) if wake else Attempt.found(path, self.reads.get(path))
        if attempt is None:
            attempt = Attempt.watched(session, earlier_path(self.record_path, number), wake)
        if attempt is None or attempt.run_key != self.run_key:
            raise CorruptRecord(self.id, f"its attempt {number} is missing")
        self.attempt_version = attempt.version
        return attempt

    def new_login(self, run: str) -> str:
        """Create a login for the driver of an attempt; returns its digest id, empty where nodes are open.

        Only this process has the password, until the submission passes it to the driver.
        """
        closed = self.context.session.settings.acl is Acl.CREATOR
        self.login = Login.random(f"run-{run}") if closed else None
        return "" if self.login is None else self.login.digest_id

    def has_login(self, attempt: Attempt) -> bool:
        """Whether this worker has the login that the driver of the attempt needs."""
        if self.context.session.settings.acl is Acl.OPEN and not attempt.login:
            return True
        return self.login is not None and self.login.digest_id == attempt.login

    def is_unsent(self, attempt: Attempt) -> bool:
        """Whether an ended attempt was given up before anything was sent to its backend."""
        # Records of earlier versions do not store it. Then the node counts, where no driver took the attempt.
        is_noted = attempt.version == VERSION_STARTED and attempt.is_unsent
        return self.state.unsent == attempt.number or (self.state.place is None and is_noted)

    def current_monitor(self) -> AttemptMonitor:
        """The monitor of the last attempt, a new one for each."""
        state = self.state
        if self.monitor.attempt != state.attempt:
            self.monitor = AttemptMonitor(
                state.attempt,
                BackendView(
                    polls=state.polls,
                    unknown_answers=state.unknown_answers,
                    last_seen=state.last_seen,
                ),
            )
        return self.monitor

    def attempt_document(self) -> Mapping[str, Any] | None:
        """The document of the last attempt; None where it cannot be read."""
        if self.state.attempt == 0:
            return None
        document = self._document(attempt_path(self.record_path, self.run_key, self.state.attempt))
        if document is None or self.state.place is None:
            return document
        return {**document, "place": self.state.place}

    def alive(self) -> Mapping[str, Any]:
        """The document in `alive` of the last attempt; empty without one."""
        path = attempt_path(self.record_path, self.run_key, self.state.attempt)
        return self._document(f"{path}/alive") or {}

    def _document(self, path: str) -> Mapping[str, Any] | None:
        try:
            found = self.context.session.get(path)
            return decode(found[0]) if found is not None and found[0] else None
        except (AccessDenied, ValueError):  # a driver may close its nodes to this worker
            return None

    def place(self, attempt: Attempt) -> SubmissionPlace:
        """Where an attempt was submitted: from the record, which no driver can write.

        Records of earlier versions do not store it; then the node of the attempt does.
        """
        return (
            SubmissionPlace.of(self.state.place)
            or SubmissionPlace.of(attempt.document.get("place"))
            or SubmissionPlace("")
        )

    # ------------------------------------------------------------------ stop
    def stop_request(self) -> tuple[Delete, bool] | None:
        """The removal of the stop node, and whether it is meant for this job; None without a node.

        Raises ClaimLost without a node when the job was claimed only for its stop request.
        """
        found = self.reads.get(self.stop_path)  # no watch: it would stay forever
        if found is None:
            if self.claim.hold.for_stop:
                raise self.claim.void()
            return None
        # The stop node of an earlier job with this id has another run key.
        meant = self.run_key.encode() in found[0] and not is_time_limit(found[0])
        if meant:
            self.stop_act, self.stops_gracefully = act_in(found[0]), is_graceful(found[0])
        return Delete(self.stop_path, found[1].version), meant

    def request_to_stop(self, attempt: Attempt) -> tuple[Operation, ...]:
        """The operations after which the driver obeys the stop node; empty when it does now."""
        found = self.context.session.get(self.stop_path)
        asked = {"run_key": self.run_key, "since": timestamp(), "reason": TIME_LIMIT}
        return tuple(request_to_stop(self.stop_path, found, asked, login=attempt.login))

    def is_stopped(self) -> bool:
        """Whether a request to stop this job exists."""
        request = self.stop_request()
        return request is not None and request[1]

    def is_stopped_at_once(self) -> bool:
        """Whether a request to stop this job exists that lets no micro-batch end."""
        return self.is_stopped() and not self.stops_gracefully
