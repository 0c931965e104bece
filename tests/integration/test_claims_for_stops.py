"""A stop request that disappears between the claim that was made for it and the act of its holder."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.handlers.actions import Remove
from orchestrator.handlers.job_context import JobContext
from orchestrator.model.job import CallbackState, JobError, JobState
from orchestrator.model.states import Queue, Status
from orchestrator.worker.dispatcher import HANDLERS
from queues.claims.claim import Claim
from queues.claims.claimer import Claimer
from queues.consumer.consumer import Consumer
from queues.dispatch.handler_pool import Action, Done, HandlerPool
from queues.model.codec import encode
from queues.model.errors import ClaimLost, Conflict, QueueError
from queues.model.operations import Create, Delete
from queues.queue_set import QueueSet
from queues.session import Session
from queues.store.commit import commit
from spark_runner.protocol.errors import KillError
from tests.claims_support import locks
from tests.jobs_support import Deployment, ScriptedDeployment, rescan_often
from tests.queues_support import Open
from tests.scripted.runner import ScriptedRunner
from tests.waiting import wait_until

ITEM = "item"
HOUR_MS = 3_600_000


# ---------------------------------------------------------------------- items
def asked_to_stop(queues: QueueSet) -> str:
    """An item that is due in an hour, and its stop request."""
    queues.put("accept", ITEM, {"n": 1}, delay_ms=HOUR_MS)
    stop = queues.layout.stop("default", ITEM)
    commit(queues.session, [Create(stop, b"{}")])
    return stop


def claimed_for_stop(queues: QueueSet) -> Claim:
    (token,) = queues.tokens("accept")
    claim = queues.claim("accept", "default", token, stopped=True)
    assert claim is not None
    return claim


def test_a_claim_made_for_a_stop_is_void_without_it_and_leaves_the_item_as_it_was(open_queues: Open) -> None:
    queues = open_queues()
    stop = asked_to_stop(queues)
    (before,) = queues.tokens("accept")
    claim = claimed_for_stop(queues)
    claim.check()
    commit(queues.session, [Delete(stop)])
    with pytest.raises(ClaimLost, match="request to stop it"):
        claim.check()
    assert (queues.tokens("accept"), locks(queues)) == ([before], [])
    record = queues.get(ITEM)
    assert (record.payload, record.claims) == ({"n": 1}, 0)  # it killed no job


def test_a_claim_that_is_given_up_does_not_count_and_the_earlier_ones_do(open_queues: Open) -> None:
    queues = open_queues()
    queues.put("accept", ITEM, {})
    for _ in range(3):
        queues.claim_by_id(ITEM).release()
    queues.claim_by_id(ITEM).give_up()
    assert (queues.get(ITEM).claims, locks(queues)) == (3, [])


def test_an_item_that_a_stop_has_moved_is_due_at_once_without_the_stop(
    open_queues: Open,
) -> None:
    queues = open_queues()
    stop = asked_to_stop(queues)
    claim = claimed_for_stop(queues)
    claim.commit(queue="running")
    commit(queues.session, [Delete(stop)])
    claim.check()
    (token,) = queues.tokens("running")
    assert token.due <= queues.clock.now_ms()


def test_no_handler_gets_an_item_whose_stop_has_gone_since_it_was_claimed(
    open_queues: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, handled = open_queues(), list[str]()
    stop = asked_to_stop(queues)
    claimed = after_the_claim(monkeypatch, lambda: commit(queues.session, [Delete(stop)]))

    def handle(claim: Claim) -> Action:
        handled.append(claim.id)
        return Done()

    with HandlerPool(open_queues(), ["accept"], handle, threads=1):
        wait_until(lambda: claimed and not locks(queues), 20, "it was claimed, and let go")
    assert (handled, queues.count("accept")) == ([], 1)


def after_the_claim(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    """Do this between the next claim and its handler; return the ids claimed since."""
    claim, claimed = Claimer.claim, list[str]()

    def then(self: Claimer, *arguments: Any, **named: Any) -> list[Claim | QueueError]:
        outcomes = claim(self, *arguments, **named)
        ids = [outcome.id for outcome in outcomes if isinstance(outcome, Claim)]
        if ids and not claimed:
            act()
        claimed.extend(ids)
        return outcomes

    monkeypatch.setattr(Claimer, "claim", then)
    return claimed


# ---------------------------------------------------------------------- jobs
def after_the_check(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    """Do this between the worker's check of the claim and the handler."""
    check, checked = Claim.check, list[str]()

    def then(self: Claim) -> None:
        check(self)
        if not checked:
            act()
        checked.append(self.id)

    monkeypatch.setattr(Claim, "check", then)
    return checked


def after_the_read(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[str]:
    """Do this when a handler has read the request, before its transition."""
    read, seen = JobContext.stop_request, list[str]()

    def then(self: JobContext) -> tuple[Delete, bool] | None:
        request = read(self)
        if not seen:
            act()
        seen.append(self.id)
        return request

    monkeypatch.setattr(JobContext, "stop_request", then)
    return seen


Moment = Callable[[pytest.MonkeyPatch, Callable[[], object]], Sequence[str]]

MOMENTS = [after_the_claim, after_the_check, after_the_read]


def scans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    counted, scan = [0], Consumer._scan  # noqa: SLF001 - what the tests wait for

    def counting(self: Consumer) -> float:
        counted[0] += 1
        return scan(self)

    monkeypatch.setattr(Consumer, "_scan", counting)
    return lambda: counted[0]


STALE = b'{"run_key": "of an earlier job"}'


@dataclass(frozen=True)
class Case:
    """A job that is due in an hour, and the moment at which its stop request disappears."""

    queue: Queue
    state: JobState
    moment: Moment
    stop: bytes = STALE  # empty: it is for this job


def stays(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, case: Case) -> JobState:
    """The state of the job after that; its queue and its due time are unchanged."""
    rescan_often(monkeypatch)
    queues = deployment.queues
    record = queues.put(case.queue, ITEM, case.state.to_payload(), delay_ms=HOUR_MS)
    path = queues.layout.stop("default", ITEM)
    commit(queues.session, [Create(path, case.stop or encode({"run_key": record.run_key}))])

    def withdraw() -> None:
        with suppress(Conflict):  # removed by an earlier holder
            commit(queues.session, [Delete(path)])

    came = case.moment(monkeypatch, withdraw)
    count = scans(monkeypatch)
    deployment.worker()
    wait_until(lambda: came and not locks(queues), 20, "it was claimed, and let go")
    seen = count()
    wait_until(lambda: count() >= seen + 2, 20, "two more scans have passed")
    after = queues.get(ITEM)
    assert (after.queue, after.token) == (case.queue, record.token)
    return JobState.from_payload(after.payload)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_finished_job_is_kept_until_it_is_due_whenever_its_stop_goes(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    state = JobState.enqueued("x").evolve(status=Status.SUCCESS)
    assert stays(deployment, monkeypatch, Case(Queue.FINISH, state, moment)).status is Status.SUCCESS


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_delayed_job_starts_when_it_is_due_whenever_its_stop_goes(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    state = stays(deployment, monkeypatch, Case(Queue.ACCEPT, JobState.enqueued("x"), moment))
    assert (state.status, state.attempt, state.handler_errors) == (Status.ACCEPT, 0, 0)


@pytest.mark.parametrize(
    ("queue", "status"),
    [(Queue.FAIL, Status.ERROR_FAIL), (Queue.SUCCESS, Status.SUCCESS), (Queue.KILL, Status.CANCEL)],
)
def test_a_job_that_waits_for_a_callback_retry_keeps_waiting_when_its_stop_is_gone(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, queue: Queue, status: Status
) -> None:
    error = JobError(error_class="user", message="no rows")
    state = JobState.enqueued("x").evolve(status=status, error=error, callback=CallbackState(attempts=2))
    after = stays(deployment, monkeypatch, Case(queue, state, after_the_claim, stop=b""))
    assert (after.callback.attempts, after.handler_errors) == (2, 0)


def test_a_kill_that_fails_is_tried_again_after_its_delay_though_the_request_stays(
    scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment, real, tried = scripted_deployment, ScriptedRunner.kill, list[tuple[int, int]]()

    def kill(runner: ScriptedRunner, run: str, *, grace_seconds: float) -> None:
        (token,) = deployment.queues.tokens(Queue.KILL)
        tried.append((deployment.queues.clock.now_ms(), token.due))
        if len(tried) == 1:
            raise KillError("its cluster does not answer")
        real(runner, run, grace_seconds=grace_seconds)

    monkeypatch.setattr(ScriptedRunner, "kill", kill)
    deployment.worker()
    job_id = deployment.submit("hang()")
    wait_until(lambda: deployment.client.get(job_id).queue is Queue.RUNNING, 30, "it has an attempt")
    wait_until(lambda: deployment.client.detail(job_id).attempts[0]["state"] == "started", 30, "it runs")
    deployment.client.kill(job_id)
    assert deployment.wait(job_id).job.status is Status.KILL
    at, due = tried[1]
    assert due > tried[0][1]
    assert at >= due - 100  # of the clocks of two sessions


def test_nothing_is_removed_before_it_is_due_whatever_its_handler_says(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = list[str]()

    def remove(job: JobContext) -> Remove:
        looks.append(job.id)
        return Remove()

    monkeypatch.setitem(HANDLERS, Queue.FINISH, remove)
    queues, session = deployment.queues, deployment.session()
    state = JobState.enqueued("x").evolve(status=Status.SUCCESS).to_payload()
    queues.put(Queue.FINISH, ITEM, state, delay_ms=HOUR_MS)
    stop(session, queues)
    deployment.worker()
    wait_until(lambda: len(looks) >= 2, 20, "it was handled twice")
    assert queues.contains(ITEM)


def stop(session: Session, queues: QueueSet) -> None:
    commit(session, [Create(queues.layout.stop("default", ITEM), STALE)])
