"""The context of one job: its claim, its state, its attempts, and the shared parts of the worker."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from loguru import logger

from orchestrator.callbacks.callback import CallbackDelivery
from orchestrator.handlers.attempt_monitor import AttemptMonitor, BackendView
from orchestrator.handlers.worker_context import WorkerContext
from orchestrator.logs.record.redaction import REDACTOR, secrets_of
from orchestrator.model.act import Act
from orchestrator.model.definition import Definition
from orchestrator.model.job import JobState
from orchestrator.model.plan import Plan, decode_plan, plan_path
from orchestrator.model.spark import Spark
from orchestrator.model.states import Status
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
from spark_runner.runners.base import Runner, Submission, SubmissionPlace


class JobContext:
    """A claimed job with its state, its definition and its attempts; used by one thread at a time."""

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
        self.login: Login | None = None  # of the driver of the attempt whose node contains its digest
        self.monitor = AttemptMonitor(0)
        self.delivery: CallbackDelivery | None = None  # of the first event in the outbox
        self.next_try = 0.0  # monotonic; to deliver that event after a failed try
        self.stop_act: Act | None = None  # the act of the stop request, once it was read
        self.stops_gracefully = False  # the stop request that was read last lets a micro-batch end
        self._on_wake = on_wake
        self._state: tuple[int, JobState] | None = None

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
            known = self._state = (self.claim.version, JobState.model_validate(self.claim.record.payload))
        return known[1]

    @property
    def record_path(self) -> str:
        """The node of the record."""
        return self.context.layout.record(self.id)

    @property
    def stop_path(self) -> str:
        """The node of a request to stop."""
        return self.context.layout.stop(self.claim.record.pool, self.id)

    @cached_property
    def definition(self) -> Definition:
        """The definition, read once; raises CorruptRecord when it cannot be read."""
        found = self.context.session.get(f"{self.record_path}/definition")
        if found is None:
            raise CorruptRecord(self.id, "it has no definition")
        try:
            definition = Definition.model_validate(json.loads(found[0]))
        except ValueError as error:
            raise CorruptRecord(self.id, f"its definition is damaged: {error}") from error
        # Messages of this worker about the job may quote them.
        REDACTOR.add_of_job(secrets_of(definition.model_dump(include={"variables", "spark", "arguments"})))
        return definition

    def plan(self) -> Plan | None:
        """The plan of its SQL script, None without one; raises DefinitionError when it cannot be read."""
        found = self.context.session.get(plan_path(self.record_path)) if self.definition.script else None
        return None if found is None else decode_plan(found[0])

    @cached_property
    def spark(self) -> Spark:
        """The Spark settings: from the definition, else the defaults of this worker for the pool.

        Raises RefusedSubmission where the two contradict each other, and where the policy forbids them;
        CorruptRecord when the definition cannot be read.
        """
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
    def attempt(self) -> Attempt | None:
        """The last attempt as it is now, None before the first; a change of an open one wakes the job.

        An open one is read twice: a watch on an ended attempt would stay until the job is removed.
        """
        attempt = self.last_attempt()
        if attempt is not None and attempt.state.is_open:
            attempt = self.last_attempt(self.wake)
            if attempt is not None and not attempt.state.is_open:  # it has ended since the first read
                self.context.session.forget(attempt.path, self.wake)
        return attempt

    def last_attempt(self, wake: Wake | None = None) -> Attempt | None:
        """The last attempt, with `wake` as its only watch; raises CorruptRecord where it is missing."""
        number = self.state.attempt
        if number == 0:
            return None
        path, session = attempt_path(self.record_path, self.run_key, number), self.context.session
        attempt = Attempt.watched(session, path, wake)
        if attempt is None:
            attempt = Attempt.watched(session, earlier_path(self.record_path, number), wake)
        if attempt is None or attempt.run_key != self.run_key:
            raise CorruptRecord(self.id, f"its attempt {number} is missing")
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

    def submissions(self, runner: Runner, run: str) -> list[Submission] | None:
        """Every submission of a run as its backend reports it; None when the backend does not answer.

        An error of a backend is no error of the job: its handler decides about a long silence.
        """
        try:
            return runner.find(run)
        except Exception as error:  # noqa: BLE001 - a library of a backend may raise any error
            logger.debug("{}: the backend {} does not answer: {}", self.id, runner.backend, error)
            self.current_monitor().backend.note_silence(str(error))
            return None

    def note_poll(self, submissions: Sequence[Submission] | None, reason: str = "") -> None:
        """Record the answer of a backend, None without one; a change wakes the job."""
        if self.monitor.backend.note_poll(
            submissions,
            reason,
            is_warned=self.state.status is Status.RUNNING_WARN,
            warn_after=self.context.rules.limits().warn_after,
            waited_for=self.monitor.warnings.waited_for,
        ):
            self.wake()

    # ------------------------------------------------------------------ stop
    def stop_request(self) -> tuple[Delete, bool] | None:
        """The removal of the stop node, and whether it is meant for this job; None without a node.

        Raises ClaimLost without a node when the job was claimed only for its stop request.
        """
        found = self.context.session.get(self.stop_path)  # no watch: it would stay forever
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
