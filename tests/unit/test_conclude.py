"""The next state of a job that has ended, by its callback, the answer to it, and requests to stop."""

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.callbacks.callback import CallbackError, CallbackReply, Callbacks, CallbacksBusy
from orchestrator.config.event_logs import EventLogSettings
from orchestrator.handlers import conclude, fail
from orchestrator.handlers.actions import Action, DeadLetter, Finish, SetStatus, Wait
from orchestrator.handlers.event_logs import EventLogs
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.notices import MAX_CALLBACK_WAIT_SECONDS
from orchestrator.handlers.worker_context import JobRules, WorkerContext
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.definition_parts import Callback
from orchestrator.model.job import CallbackState, JobError, JobState
from orchestrator.model.states import FINAL, Status, check_transition
from queues import Wake
from queues.claims.claim import Claim
from queues.model.names import Layout, Token
from queues.model.operations import Check, Delete
from queues.model.record import Record
from spark_runner.protocol.attempt import Attempt

URL = "http://there/ended"
STOP = Delete("/stop", 3)
NONE: Any = object()
LOGS = EventLogs({"logged": EventLogSettings(url="hdfs://one/logs", history_server="http://history:18080")})


class Receiver(Callbacks):
    """Answers from a list and then repeats the last one: a status, an error to raise, or NONE."""

    def __init__(self, *answers: object) -> None:
        super().__init__()
        self._answers = list(answers) or [NONE]
        self.bodies: list[Mapping[str, Any]] = []

    def call(
        self, callback: Callback, body: Mapping[str, Any], on_free: Callable[[], bool] | None = None
    ) -> CallbackReply:
        assert callback.url
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, CallbacksBusy):
            assert on_free is not None  # else no one would wake the job
            raise answer
        self.bodies.append(copy.deepcopy(body))
        if isinstance(answer, Exception):
            raise answer
        return CallbackReply.model_validate(
            {"code": "SUCCESS", "data": {"status": None if answer is NONE else answer}}
        )


class Job(JobContext):
    """A held job without a ZooKeeper: `take` changes its state as the transition of an action does."""

    def __init__(self, status: Status, receiver: Receiver | None = None, **fields: Any) -> None:
        self.receiver = receiver or Receiver()
        self.stopped: bool | None = None  # None = no stop node, False = one for an earlier job
        self.last: Attempt | None = None
        token = Token(due=1, seq=1, id="job")
        record = Record("job", "key", status.queue.value, fields.pop("pool", "default"), token, "nonce")
        claim = SimpleNamespace(record=record, id="job", version=0)
        reporting = SimpleNamespace(callbacks=self.receiver, history=None)
        # A ZooKeeper without positions of pushes.
        empty = SimpleNamespace(get=lambda _: None, get_many=lambda paths: [None] * len(paths))
        super().__init__(
            cast("Claim", claim),
            cast(
                "WorkerContext",
                SimpleNamespace(
                    reporting=reporting,
                    layout=Layout("/jobs"),
                    session=empty,
                    rules=JobRules(event_logs=LOGS),
                ),
            ),
        )
        state = JobState.enqueued("name").evolve(status=status, attempt=2, started="then", ended="later")
        self._now = state.evolve(**fields.pop("state", {}))
        document = {"name": "name", "python": "pass", "callback": {"url": URL}, **fields}
        self.define(build_definition(document, "test"))

    def define(self, definition: Definition) -> None:
        """Give it this definition."""
        self._definition = definition

    @property
    def state(self) -> JobState:
        return self._now

    def attempt_document(self) -> Mapping[str, Any] | None:
        return {"place": {"backend": "yarn", "cluster": {"resource_manager": "http://rm:8088"}}}

    def stop_request(self) -> tuple[Delete, bool] | None:
        return None if self.stopped is None else (STOP, self.stopped)

    def last_attempt(self, wake: Wake | None = None) -> Attempt | None:  # noqa: ARG002 - as its base
        return self.last

    def take(self, action: Action) -> Action:
        if isinstance(action, SetStatus | Finish):
            check_transition(self._now.status, action.status)
            self._now = self._now.evolve(**action.changes, status=action.status)
            if STOP in action.extra:
                self.stopped = None
        return action


def failed(receiver: Receiver | None = None, error_class: str = "user", kind: str = "", **fields: Any) -> Job:
    error = JobError(error_class=error_class, message="why", type=kind)
    state = {"error": error, **fields.pop("state", {})}
    return Job(Status.ERROR_FAIL, receiver, state=state, **{"retry": {"attempts": 1}, **fields})


def finished(action: Action) -> Finish:
    assert isinstance(action, Finish)
    return action


def moved(action: Action) -> SetStatus:
    assert isinstance(action, SetStatus)
    return action


def callback_of(action: Action) -> CallbackState:
    assert isinstance(action, SetStatus | Finish)
    state = action.changes["callback"]
    assert isinstance(state, CallbackState)
    return state


BROKEN = CallbackError("http://there: HTTP 500")


# ---------------------------------------------------------------------- history
@pytest.mark.parametrize(
    ("fields", "history"),
    [
        ({"pool": "logged", "state": {"application_id": "app-1"}}, "http://history:18080/history/app-1"),
        ({"pool": "logged.low", "state": {"application_id": "app-1"}}, "http://history:18080/history/app-1"),
        ({"pool": "logged"}, None),
        ({"state": {"application_id": "app-1"}}, None),
        ({"pool": "logged", "state": {"application_id": "a b"}}, None),
    ],
)
def test_an_end_has_the_address_of_its_history_where_there_is_one(
    fields: dict[str, Any], history: str | None
) -> None:
    job = Job(Status.SUCCESS, **fields)
    assert finished(conclude.handle(job)).changes.get("history") == history
    job = failed(**copy.deepcopy(fields), retry={"attempts": 2})
    assert moved(fail.handle(job)).changes.get("history") == history


# ---------------------------------------------------------------------- callbacks
def test_a_job_without_a_callback_address_finishes_without_a_call() -> None:
    job = Job(Status.SUCCESS, callback={})
    assert conclude.handle(job) == Finish(Status.SUCCESS)
    assert job.receiver.bodies == []


def test_a_job_whose_callback_succeeded_finishes_with_that_on_record() -> None:
    job = Job(Status.SUCCESS)
    assert conclude.handle(job) == Finish(Status.SUCCESS, {"callback": CallbackState(attempts=1, done=True)})


def test_the_body_says_what_the_record_says() -> None:
    job = failed(state={"failures": 2, "submissions": 1, "demotions": 3, "application_id": "app"})
    fail.handle(job)
    created = job.state.created
    assert job.receiver.bodies == [
        {
            "id": "job",
            "run_key": "key",
            "version": 2,
            "event": "end",
            "number": 1,
            "name": "name",
            "labels": {},
            "pool": "default",
            "status": "ERROR_FAIL",
            "previous_status": "ACCEPT",
            "attempt": 2,
            "times": {"created": created, "first_started": "then", "started": "then", "ended": "later"},
            "seconds": None,
            "backend": "yarn",
            "cluster": {"resource_manager": "http://rm:8088"},
            "host": None,
            "application_id": "app",
            "ui": "http://rm:8088/cluster/app/app",
            "history": None,
            "fire_time": None,
            "counters": {"failures": 3, "submissions": 1, "demotions": 3},
            "monitor": {"polls": 0, "unknown_answers": 0},
            "warning": None,
            "error": {"class": "user", "type": "", "message": "why"},
            "written": None,
        }
    ]


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.ERROR_FAIL])
def test_a_callback_that_fails_is_tried_again_ever_later_and_given_up_in_the_end(status: Status) -> None:
    receiver = Receiver(BROKEN)
    job = Job(status, receiver, callback={"url": URL, "attempts": 4}, retry={"attempts": 1})
    handle = conclude.handle if status is Status.SUCCESS else fail.handle
    delays = []
    for tries in (1, 2, 3):
        action = moved(job.take(handle(job)))
        assert action.status is status
        assert action.changes == {"callback": CallbackState(attempts=tries, error=str(BROKEN))}
        delays.append(action.delay)
        # Fields outside the outcome may change between two tries, and another worker may try.
        job.take(SetStatus(status, {"handler_errors": tries, "updated": f"{tries}"}))
    assert delays == [pytest.approx(first, rel=0.21) for first in (5, 10, 20)]
    last = finished(job.take(handle(job)))
    assert last.status is status
    assert callback_of(last) == CallbackState(attempts=4, done=True, error=str(BROKEN))
    assert len(receiver.bodies) == 4
    assert all(body == receiver.bodies[0] for body in receiver.bodies)


def test_delays_are_spread_and_have_a_bound() -> None:
    state = {"callback": CallbackState(attempts=90)}
    job = Job(Status.SUCCESS, Receiver(BROKEN), callback={"url": URL, "attempts": 100}, state=state)
    delays = {moved(conclude.handle(job)).delay for _ in range(50)}
    assert len(delays) == 50
    assert 240 <= min(delays) < 280
    assert 320 < max(delays) <= 360


def test_a_callback_that_comes_through_later_leaves_no_error() -> None:
    job = Job(Status.SUCCESS, Receiver(BROKEN, NONE))
    job.take(conclude.handle(job))
    assert callback_of(conclude.handle(job)) == CallbackState(attempts=2, done=True)


def test_errors_can_be_ignored_but_are_on_record() -> None:
    job = Job(Status.SUCCESS, Receiver(BROKEN), callback={"url": URL, "ignore_errors": True})
    action = finished(conclude.handle(job))
    assert callback_of(action) == CallbackState(attempts=1, done=True, error=str(BROKEN))


def test_a_job_waits_while_too_many_callbacks_are_under_way() -> None:
    job = Job(Status.SUCCESS, Receiver(CallbacksBusy("too many")))
    assert conclude.handle(job) == Wait(MAX_CALLBACK_WAIT_SECONDS)


def test_a_finished_callback_is_not_repeated() -> None:
    job = Job(Status.SUCCESS, state={"callback": CallbackState(attempts=1, done=True)})
    assert conclude.handle(job) == Finish(Status.SUCCESS)
    assert job.receiver.bodies == []


def test_operations_of_the_caller_are_committed_when_the_job_leaves_after_its_callback() -> None:
    job, extra = Job(Status.KILL, Receiver(BROKEN, NONE)), (Check("/x"),)
    waiting = moved(job.take(conclude.conclude(job, Status.CANCEL, {"ended": "now"}, extra)))
    assert waiting.status is Status.KILL
    assert (waiting.extra, set(waiting.changes)) == ((), {"callback"})
    ended = finished(job.take(conclude.conclude(job, Status.CANCEL, {"ended": "now"}, extra)))
    assert (ended.status, ended.extra, ended.changes["ended"]) == (Status.CANCEL, extra, "now")
    first, second = job.receiver.bodies
    assert first == second
    assert (first["status"], first["times"]["ended"]) == ("CANCEL", "now")


# ---------------------------------------------------------------------- answers
ALLOWED = {
    (Status.SUCCESS, Status.ERROR_FAIL),
    (Status.ERROR_FAIL, Status.SUCCESS),
    (Status.ERROR_FAIL, Status.ACCEPT),
    (Status.ERROR_FAIL, Status.CANCEL),
    (Status.KILL, Status.SUCCESS),
    (Status.KILL, Status.ERROR_FAIL),
    (Status.KILL, Status.CANCEL),
}


@pytest.mark.parametrize(("before", "answered"), list(itertools.product(sorted(FINAL), Status)))
def test_an_answer_overrides_a_status_only_where_the_table_allows(before: Status, answered: Status) -> None:
    job = Job(before, Receiver(answered.value))
    action = job.take(conclude.conclude(job, before, {"failures": 1}))
    assert isinstance(action, SetStatus | Finish)
    if before is answered or (before, answered) in ALLOWED:
        assert action.status is answered
        assert action.changes["callback"].error is None
    else:
        assert action == Finish(before, action.changes)
        assert callback_of(action).done
        assert f'"{answered}", which cannot follow {before}' in str(callback_of(action).error)
    assert action.changes["failures"] == 1
    assert len(job.receiver.bodies) == 1


@pytest.mark.parametrize("answered", ["DONE", "success", "\x1b[31m", "x" * 10_000])
def test_an_unknown_status_is_put_on_record_and_changes_nothing(answered: str) -> None:
    action = finished(conclude.handle(Job(Status.SUCCESS, Receiver(answered))))
    assert action.status is Status.SUCCESS
    assert callback_of(action).done
    error = str(callback_of(action).error)
    assert "cannot follow SUCCESS" in error
    assert error.isprintable()
    assert len(error) < 300


@pytest.mark.parametrize("before", [Status.KILL, Status.CANCEL])
@pytest.mark.parametrize("answered", Status)
def test_a_killed_job_is_never_run_again(before: Status, answered: Status) -> None:
    action = finished(conclude.conclude(Job(before, Receiver(answered.value)), before))
    assert action.status in FINAL


def test_an_answer_that_calls_a_success_a_failure_is_retried_where_the_definition_names_that() -> None:
    job = Job(Status.SUCCESS, Receiver("ERROR_FAIL"), retry={"attempts": 2, "delay": 10, "on": ["callback"]})
    action = moved(job.take(conclude.handle(job)))
    assert (action.status, action.delay) == (Status.ERROR_FAIL, 0)
    assert job.state.error is not None
    assert job.state.error.error_class == "callback"
    again = moved(job.take(fail.handle(job)))
    assert again.status is Status.ACCEPT
    assert again.changes == {"failures": 1, "callback": CallbackState()}
    assert again.delay == pytest.approx(10, rel=0.21)


def test_an_answer_that_makes_a_success_a_failure_ends_the_job_without_another_callback() -> None:
    job = Job(Status.SUCCESS, Receiver("ERROR_FAIL"), retry={"attempts": 2, "on": ["user"]})
    job.take(conclude.handle(job))
    action = finished(job.take(fail.handle(job)))
    assert action == Finish(Status.ERROR_FAIL, {"failures": 1})
    assert job.state.callback == CallbackState(attempts=1, done=True)
    assert len(job.receiver.bodies) == 1


def test_a_failure_can_be_run_again_by_the_answer_after_a_delay() -> None:
    retry = {"attempts": 1, "delay": 10, "factor": 2}
    job = failed(Receiver("ACCEPT"), retry=retry, state={"failures": 1})
    action = moved(job.take(fail.handle(job)))
    assert action.status is Status.ACCEPT
    assert action.changes == {"failures": 2, "callback": CallbackState()}
    assert action.delay == pytest.approx(20, rel=0.21)


# ---------------------------------------------------------------------- stops
def test_a_stop_that_came_too_late_goes_with_the_next_try_and_shortens_no_delay() -> None:
    job = Job(Status.SUCCESS, Receiver(BROKEN))
    job.stopped = True
    action = moved(job.take(conclude.handle(job)))
    assert action.extra == (STOP,)
    assert action.delay > 0
    assert job.state.callback.stopped


def test_a_stop_of_an_earlier_job_goes_likewise_and_means_nothing() -> None:
    job = Job(Status.SUCCESS, Receiver(BROKEN))
    for tries in (1, 2):
        job.stopped = False
        assert moved(job.take(conclude.handle(job))).extra == (STOP,)
        assert job.state.callback == CallbackState(attempts=tries, error=str(BROKEN))


def test_a_job_that_is_stopped_while_its_callback_fails_finishes_after_one_more_try() -> None:
    job = Job(Status.KILL, Receiver(BROKEN))
    job.stopped = True  # the reason for its status
    moved(job.take(conclude.conclude(job, Status.KILL)))
    moved(job.take(conclude.conclude(job, Status.KILL)))
    job.stopped = True
    action = finished(job.take(conclude.conclude(job, Status.KILL)))
    assert callback_of(action) == CallbackState(attempts=3, done=True, error=str(BROKEN), stopped=True)


@pytest.mark.parametrize("when", ["before", "after"])
def test_no_answer_reruns_a_job_that_was_asked_to_stop(when: str) -> None:
    job = failed(Receiver(BROKEN, BROKEN, "ACCEPT"))
    if when == "before":
        job.stopped = True
        job.take(fail.handle(job))
    job.take(fail.handle(job))
    if when == "after":
        job.take(fail.handle(job))
        job.stopped = True
    action = finished(job.take(fail.handle(job)))
    assert (action.status, action.changes["failures"]) == (Status.ERROR_FAIL, 1)
    assert "was asked to stop" in str(callback_of(action).error)


def test_a_stop_is_remembered_when_the_answer_makes_a_failure_of_a_success() -> None:
    job = Job(Status.SUCCESS, Receiver(BROKEN, "ERROR_FAIL"), retry={"attempts": 9, "on": ["callback"]})
    job.stopped = True
    job.take(conclude.handle(job))
    job.take(conclude.handle(job))
    assert finished(job.take(fail.handle(job))).status is Status.ERROR_FAIL
    assert len(job.receiver.bodies) == 2


# ---------------------------------------------------------------------- failures
RETRY = {"attempts": 3, "delay": 100, "factor": 2, "max_delay": 150, "on": ["user"]}


def outcome(action: Action) -> str:
    return str(action.status) if isinstance(action, SetStatus | Finish) else type(action).__name__


@pytest.mark.parametrize(
    ("error_class", "failures", "expected"),
    [
        ("user", 0, "ACCEPT"),
        ("user", 1, "ACCEPT"),
        ("user", 2, "ERROR_FAIL"),
        ("user", 9, "ERROR_FAIL"),
        ("lost", 0, "ERROR_FAIL"),
        ("definition", 0, "ERROR_FAIL"),
    ],
)
def test_a_failure_is_retried_while_attempts_are_left_and_its_kind_is_named(
    error_class: str, failures: int, expected: str
) -> None:
    job = failed(error_class=error_class, retry=RETRY, state={"failures": failures})
    action = fail.handle(job)
    assert outcome(action) == expected
    assert isinstance(action, SetStatus | Finish)
    assert action.changes["failures"] == failures + 1
    assert len(job.receiver.bodies) == (expected == "ERROR_FAIL")  # a retry has no callback


def test_a_failure_without_a_reason_counts_as_lost() -> None:
    assert outcome(fail.handle(Job(Status.ERROR_FAIL, retry={"on": ["lost"]}))) == "ACCEPT"
    assert outcome(fail.handle(Job(Status.ERROR_FAIL, retry={"on": ["user"]}))) == "ERROR_FAIL"


def test_retries_are_spread_around_their_delay() -> None:
    delays = {moved(fail.handle(failed(retry=RETRY))).delay for _ in range(50)}
    assert len(delays) == 50
    assert all(80 <= delay <= 120 for delay in delays)


def test_a_failure_counts_once_however_often_it_is_looked_at() -> None:
    job = failed(
        Receiver(CallbacksBusy("busy"), BROKEN, CallbacksBusy("busy"), BROKEN, NONE), state={"failures": 4}
    )
    for _ in range(4):
        job.take(fail.handle(job))
        assert job.state.failures == 4
    fail.handle(job)  # and the worker dies before it commits
    job.take(fail.handle(job))
    assert job.state.failures == 5
    assert {body["counters"]["failures"] for body in job.receiver.bodies} == {5}


def test_a_failure_whose_callback_is_under_way_is_not_reconsidered() -> None:
    job = failed(Receiver(BROKEN, NONE))
    job.take(fail.handle(job))
    job.define(definition(job, retry=RETRY))
    job.stopped = True
    assert outcome(fail.handle(job)) == "ERROR_FAIL"


def definition(job: Job, **fields: Any) -> Definition:
    return build_definition({**job.definition.model_dump(exclude_defaults=True), **fields}, "test")


@pytest.mark.parametrize(("stopped", "expected"), [(None, "ACCEPT"), (False, "ACCEPT"), (True, "CANCEL")])
@pytest.mark.parametrize(("kind", "on_run"), [("user", "fail"), ("timeout", "retry"), ("timeout", "demote")])
def test_a_stop_request_keeps_a_failed_job_from_its_next_attempt(
    kind: str, on_run: str, *, stopped: bool | None, expected: str
) -> None:
    job = failed(error_class=kind, kind="RunTimeout", retry=RETRY, timeout={"on_run": on_run})
    job.stopped = stopped
    assert outcome(fail.handle(job)) == expected
    assert job.receiver.bodies == []


def test_a_driver_that_fails_after_a_graceful_request_is_not_retried() -> None:
    job = failed(retry=RETRY)
    job.stopped = job.stops_gracefully = True
    assert outcome(fail.handle(job)) == "ERROR_FAIL"


def ran(seconds: float, *, by_ensemble: float | None = None, **facts: Any) -> Attempt:
    """An attempt that has failed after so many seconds."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = {"started": start.isoformat(), "ended": (start + timedelta(seconds=seconds)).isoformat()}
    changed = round((seconds if by_ensemble is None else by_ensemble) * 1000)
    return Attempt("/a/attempt-2-key", 2, {"state": "failed", **times, **facts}, changed)


STABLE = {**RETRY, "reset_after": "1h", "delay": "1s", "factor": 10}


@pytest.mark.parametrize(
    ("last", "counted"),
    [
        (ran(3600), 1),
        (ran(3599), 3),
        (ran(9000, by_ensemble=3599), 3),  # the clock of its host has jumped
        (ran(3599, by_ensemble=9000), 3),
        (ran(4500, silent_seconds=930), 3),  # it was lost, and may have run for less
        (ran(4530, silent_seconds=930), 1),
        (ran(3599, silent_seconds=-930), 3),
        (ran(3599, started="2020"), 3),
        (ran(3600, ended=None), 3),
        (None, 3),
    ],
)
def test_a_stable_attempt_clears_the_failures_before_it(last: Attempt | None, counted: int) -> None:
    job = failed(retry=STABLE | {"attempts": 4}, state={"failures": 2})
    job.last = last
    action = moved(fail.handle(job))
    assert (action.status, action.changes["failures"]) == (Status.ACCEPT, counted)
    assert (action.delay < 2) is (counted == 1)  # the delays start again, too
    last_try = failed(retry=STABLE | {"attempts": 3}, state={"failures": 2})
    last_try.last = last
    assert outcome(fail.handle(last_try)) == ("ACCEPT" if counted == 1 else "ERROR_FAIL")


@pytest.mark.parametrize(("mode", "counted"), [("streaming", 1), ("available-now", 3), ("", 3)])
def test_by_default_only_a_stream_becomes_stable(mode: str, counted: int) -> None:
    for retry, expected in ((RETRY, counted), (RETRY | {"reset_after": 0}, 3)):
        job = failed(retry=retry | {"attempts": 9}, state={"failures": 2, "mode": mode})
        job.last = ran(3600)
        assert moved(fail.handle(job)).changes["failures"] == expected


@pytest.mark.parametrize(
    ("on_run", "on", "failures", "expected"),
    [
        ("fail", [], 0, "ERROR_FAIL"),  # `retry.on` is refused then: test_definition.py
        *[
            ("retry", on, failures, expected)
            for on in ([], ["timeout"])
            for failures, expected in ((0, "ACCEPT"), (1, "ACCEPT"), (2, "ERROR_FAIL"))
        ],
    ],
)
def test_a_job_that_ran_for_too_long_ends_or_is_retried_as_the_time_limit_says(
    on_run: str, on: Sequence[str], failures: int, expected: str
) -> None:
    retry = {**RETRY, "on": on}
    state = {"failures": failures}
    job = failed(
        error_class="timeout", kind="RunTimeout", retry=retry, timeout={"on_run": on_run}, state=state
    )
    assert outcome(fail.handle(job)) == expected


def demoted(state: dict[str, Any], **fields: Any) -> Action:
    timeout = {"on_run": "demote"}
    return fail.handle(
        failed(error_class="timeout", kind="RunTimeout", timeout=timeout, state=state, **fields)
    )


@pytest.mark.parametrize(("pool", "lane"), [("team", "team.low"), ("team.low", "team.low")])
def test_a_job_that_ran_for_too_long_can_move_to_the_low_lane(pool: str, lane: str) -> None:
    action = moved(demoted({"failures": 7, "demotions": 2}, retry=RETRY, pool=pool))
    assert (action.status, action.pool) == (Status.ACCEPT, lane)
    assert action.changes == {"demotions": 3, "callback": CallbackState()}
    # A stop request in the old pool would be left behind, so its absence is checked.
    assert [str(operation).split()[0] for operation in action.extra] == ["create", "delete"]


def test_a_demoted_job_is_let_go_even_without_a_delay() -> None:
    assert moved(demoted({}, retry={"attempts": 1, "delay": 0})).delay > 0


def test_a_job_that_timed_out_in_the_low_lane_too_often_becomes_a_dead_letter() -> None:
    action = demoted({"demotions": 3}, retry=RETRY, pool="team.low")
    assert isinstance(action, DeadLetter)
    assert (action.reason.error_class, action.reason.type) == ("timeout", "RunTimeout")
    assert "why, after 3 demotions" in action.reason.message


@pytest.mark.parametrize("on_run", ["fail", "retry", "demote"])
def test_a_job_that_waited_for_too_long_ends_without_a_failed_attempt(on_run: str) -> None:
    job = failed(error_class="timeout", kind="QueuedTimeout", retry=RETRY, timeout={"on_run": on_run})
    action = finished(fail.handle(job))
    assert (action.status, set(action.changes)) == (Status.ERROR_FAIL, {"callback"})
