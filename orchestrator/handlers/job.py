"""A job in the hands of a worker: what its handlers may look at."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from loguru import logger

from orchestrator.callbacks.delivery import Delivery
from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.handlers.context import Context
from orchestrator.handlers.warnings import recordable
from orchestrator.logs.record.redaction import REDACTOR, secrets_of
from orchestrator.models.act import Act
from orchestrator.models.definition import Definition
from orchestrator.models.job import JobState
from orchestrator.models.spark import Spark
from orchestrator.plan import Plan, decode_plan, plan_path
from orchestrator.policy.policy import Refused
from orchestrator.states import Status
from orchestrator.stop_requests import TIME_LIMIT, act_in, is_time_limit, request_to_stop
from queues.claim import Claim
from queues.documents import decode, timestamp
from queues.errors import AccessDenied, CorruptRecord
from queues.names import LOW
from queues.operations import Delete, Operation
from queues.session import Acl, Login, Wake
from spark_runner.attempt import VERSION_STARTED, Attempt, attempt_path, earlier_path
from spark_runner.errors import RefusedSubmission
from spark_runner.runners.base import Place, Runner, Submission


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
        self.login: Login | None = None  # of the driver of the attempt whose node names it
        self.monitor = AttemptMonitor(0)
        self.delivery: Delivery | None = None  # of the first event in the outbox
        self.next_try = 0.0  # monotonic; to tell it, after a try that failed
        self.stop_act: Act | None = None  # the act of the request to stop it, once that was seen
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
        REDACTOR.add_of_job(secrets_of(definition.model_dump(include={"variables", "spark", "arguments"})))
        return definition

    def plan(self) -> Plan | None:
        """The plan of its SQL script, None without one; raises DefinitionError when it cannot be read."""
        found = self.context.session.get(plan_path(self.record_path)) if self.definition.script else None
        return None if found is None else decode_plan(found[0])

    @cached_property
    def spark(self) -> Spark:
        """Where and how it runs: as its definition says, else as this worker does for its pool.

        Raises RefusedSubmission where the two do not go together, and where the policy forbids it.
        """
        pool = self.claim.record.pool.removesuffix(LOW)
        try:
            filled = self.context.spark_of(pool, self.definition.spark)
        except ValueError as error:
            raise RefusedSubmission(f"the Spark defaults of pool {pool} do not fit: {error}") from error
        try:
            self.context.policy.check(pool, self.definition, spark=filled)
        except Refused as error:
            raise RefusedSubmission(str(error)) from error
        return filled

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
        attempt = Attempt.watched(session, path, wake)
        if attempt is None:
            attempt = Attempt.watched(session, earlier_path(self.record_path, number), wake)
        if attempt is None or attempt.run_key != self.run_key:
            raise CorruptRecord(self.id, f"its attempt {number} is missing")
        return attempt

    def new_login(self, run: str) -> str:
        """Make a login for the driver of an attempt; returns its digest id, empty where nodes are open.

        The password is in this process alone until it goes to the driver with its submission.
        """
        closed = self.context.session.settings.acl is Acl.CREATOR
        self.login = Login.random(f"run-{run}") if closed else None
        return "" if self.login is None else self.login.digest_id

    def has_login(self, attempt: Attempt) -> bool:
        """Whether a driver can be submitted that may touch the attempt."""
        if self.context.session.settings.acl is Acl.OPEN and not attempt.login:
            return True
        return self.login is not None and self.login.digest_id == attempt.login

    def is_unsent(self, attempt: Attempt) -> bool:
        """Whether an ended attempt was given up before anything was sent to its backend."""
        # Records of earlier versions do not say it. Its node does, and is believed where no driver took it.
        is_noted = attempt.version == VERSION_STARTED and bool(attempt.document.get("unsent"))
        return self.state.unsent == attempt.number or (self.state.place is None and is_noted)

    def current_monitor(self) -> AttemptMonitor:
        """The monitor of the last attempt, a new one for each."""
        state = self.state
        if self.monitor.attempt != state.attempt:
            self.monitor = AttemptMonitor(
                state.attempt,
                polls=state.polls,
                unknown_answers=state.unknown_answers,
                last_seen=state.last_seen,
            )
        return self.monitor

    def attempt_document(self) -> Mapping[str, Any] | None:
        """What stands in the node of the last attempt; None where that can be read by nobody."""
        if self.state.attempt == 0:
            return None
        document = self._document(attempt_path(self.record_path, self.run_key, self.state.attempt))
        if document is None or self.state.place is None:
            return document
        return {**document, "place": self.state.place}

    def alive(self) -> Mapping[str, Any]:
        """What the driver of the last attempt shows of itself now; empty without one."""
        path = attempt_path(self.record_path, self.run_key, self.state.attempt)
        return self._document(f"{path}/alive") or {}

    def _document(self, path: str) -> Mapping[str, Any] | None:
        try:
            found = self.context.session.get(path)
            return decode(found[0]) if found is not None and found[0] else None
        except (AccessDenied, ValueError):  # what a driver makes may be closed to us
            return None

    def place(self, attempt: Attempt) -> Place:
        """Where an attempt was submitted: as the record says, which no driver can write.

        Records of earlier versions do not say it; then its node has to.
        """
        return Place.of(self.state.place) or Place.of(attempt.document.get("place")) or Place("")

    def submissions(self, runner: Runner, run: str) -> list[Submission] | None:
        """Every submission of a run as its backend sees it now; None when it does not answer.

        Whatever a backend raises is no fault of the job: what comes of a long silence is for its handler.
        """
        try:
            return runner.find(run)
        except Exception as error:  # noqa: BLE001 - libraries of backends raise what they like
            logger.debug("{}: the backend {} does not answer: {}", self.id, runner.backend, error)
            self.current_monitor().unknown_reason = recordable(str(error))
            return None

    def note_poll(self, submissions: Sequence[Submission] | None, reason: str = "") -> None:
        """Record what a backend reported, None when it did not answer; news wakes the job."""
        is_warned = self.state.status is Status.RUNNING_WARN
        warn_after = self.context.limits().warn_after
        if self.monitor.note_poll(submissions, reason, is_warned=is_warned, warn_after=warn_after):
            self.wake()

    # ------------------------------------------------------------------ stop
    def stop_request(self) -> tuple[Delete, bool] | None:
        """The removal of the stop node, and whether it is meant for this very job; None without a node.

        Raises ClaimLost when there is none and the job was claimed for one alone.
        """
        found = self.context.session.get(self.stop_path)  # no watch: it would stay for ever
        if found is None:
            if self.claim.hold.for_stop:
                raise self.claim.void()
            return None
        # A node of an earlier job of the same id carries another run key.
        meant = self.run_key.encode() in found[0] and not is_time_limit(found[0])
        if meant:
            self.stop_act = act_in(found[0])
        return Delete(self.stop_path, found[1].version), meant

    def request_to_stop(self, attempt: Attempt) -> tuple[Operation, ...]:
        """What makes the stop node one that the driver of the attempt obeys; nothing when it is."""
        found = self.context.session.get(self.stop_path)
        asked = {"run_key": self.run_key, "since": timestamp(), "reason": TIME_LIMIT}
        return tuple(request_to_stop(self.stop_path, found, asked, login=attempt.login))

    def is_stopped(self) -> bool:
        """Whether somebody asked to stop this job."""
        request = self.stop_request()
        return request is not None and request[1]
