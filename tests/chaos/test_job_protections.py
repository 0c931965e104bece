"""The tests of jobs fail when a protection is taken out; with all protections the same runs are clean."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.handlers.hooks import Hook
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from queues.model.operations import Operation, Set
from queues.session import Posted, Session
from spark_runner.runners.base import Submission, SubmitRequest
from tests.crash_points import Point
from tests.job_mutations import Protection, take_out
from tests.jobs_support import Deployment
from tests.scripted.backend import Backend
from tests.scripted.judge import overshot, violations
from tests.scripted.runner import ScriptedRunner
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

END_S = 60


# The protections of each test: without them it finds violations.
OVERSHOOTS = (Protection.SLOT,)
UNANNOUNCED = (Protection.INTENT,)
GIVES_UP = (Protection.COMPARE, Protection.CONFLICT)


def test_every_protection_is_missed_by_a_test() -> None:
    assert {*OVERSHOOTS, *UNANNOUNCED, *GIVES_UP} == set(Protection)


@pytest.mark.parametrize("without", ["", *OVERSHOOTS])
def test_a_cap_is_overshot_when_no_place_is_taken_in_the_intent(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    settings, cap = deployment.settings, 2
    if without:
        take_out(Protection(without), monkeypatch.setattr)
    pools = deployment.queues.pools  # as `config set` does
    deployment.queues.ensure_pool()
    pools.change("default", cap=cap)
    with Backend(settings.state_dir, settings.zookeeper_hosts) as backend:
        for _ in range(2):
            deployment.worker(runner=ScriptedRunner(settings.state_dir), slots=4)
        ids = [deployment.submit("sleep(0.5)") for _ in range(8)]
        for job_id in ids:
            deployment.wait(job_id, timeout=END_S)
        backend.wait_idle()
        assert bool(overshot(backend.highest, {"pool:default": cap})) is bool(without)
        assert (
            violations(deployment.client, backend.store.ledger, {job_id: {Status.SUCCESS} for job_id in ids})
            == []
        )


class SubmitsTwice(ScriptedRunner):
    """Submits each request twice, as two uncoordinated workers may do."""

    def submit(self, request: SubmitRequest) -> Submission:
        other = "f" * 32
        again = dataclasses.replace(request, incarnation=other, plan={**request.plan, "incarnation": other})
        super().submit(again)
        return super().submit(request)


def test_user_code_starts_twice_when_a_driver_does_not_ask_its_attempt(deployment: Deployment) -> None:
    settings = deployment.settings
    with Backend(settings.state_dir, settings.zookeeper_hosts, compares=False) as backend:
        deployment.worker(runner=SubmitsTwice(settings.state_dir))
        job_id = deployment.submit("sleep(0.3)")
        deployment.wait(job_id, timeout=END_S)
        backend.wait_idle()
        found = violations(deployment.client, backend.store.ledger, {job_id: {Status.SUCCESS}})
    assert found == [f"{job_id}: the user code of attempt 1 was started 2 times"]


@pytest.mark.parametrize("without", ["", *UNANNOUNCED])
def test_user_code_runs_unannounced_when_a_driver_is_submitted_before_the_intent(
    deployment: Deployment, tmp_path: Path, without: str
) -> None:
    settings = deployment.settings
    config = worker_config(settings, "scripted", die_at=Point("accept>running", after=False), without=without)
    first = WorkerProcess("first", tmp_path, config, settings.zookeeper_hosts)
    with Backend(settings.state_dir, settings.zookeeper_hosts) as backend, worker_processes(first):
        job_id = deployment.submit("pass")
        first.wait_killed()
        first.end_session()
        deployment.worker(runner=ScriptedRunner(settings.state_dir))

        def found() -> list[str]:
            return violations(deployment.client, backend.store.ledger, {job_id: {Status.SUCCESS}})

        if without:  # the job itself is stuck then
            what = "user code has run without an announced attempt"
            wait_until(lambda: any("were not announced" in words for words in found()), END_S, what)
        else:
            deployment.wait(job_id, timeout=END_S)
            assert found() == []


class Transitions(Hook):
    """The transitions of jobs, as a hook receives them."""

    def __init__(self) -> None:
        self.changes: list[tuple[Status, Queue]] = []

    def after_transition(self, job_id: str, before: JobState, after: JobState, queue: Queue) -> None:
        assert job_id
        assert before
        self.changes.append((after.status, queue))


@pytest.fixture
def driver_is_faster(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """A full cluster that starts the driver just when its worker gives the attempt up."""
    settings = deployment.settings
    with Backend(settings.state_dir, settings.zookeeper_hosts) as backend:
        hold = settings.state_dir / "hold"
        hold.touch()
        post = Session.post

        def last_moment(session: Session, operations: Sequence[Operation]) -> Posted:
            if hold.exists() and any(_closes(operation) for operation in operations):
                hold.unlink()
                wait_until(backend.store.ledger.starts, END_S, "the driver has taken the attempt")
            return post(session, operations)

        monkeypatch.setattr(Session, "post", last_moment)
        yield backend


@pytest.mark.parametrize("without", ["", *GIVES_UP])
def test_an_attempt_is_given_up_under_its_driver_when_it_is_not_compared_or_the_refusal_not_heard(
    deployment: Deployment, driver_is_faster: Backend, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    if without:
        take_out(Protection(without), monkeypatch.setattr)
    transitions = Transitions()

    def found(job_id: str) -> list[str]:
        return violations(deployment.client, driver_is_faster.store.ledger, {job_id: {Status.SUCCESS}})

    deployment.worker(runner=ScriptedRunner(deployment.settings.state_dir), hooks=[transitions])
    retry, limits = {"attempts": 1, "delay": "100ms"}, {"submit": 1}
    job_id = deployment.submit("sleep(0.5)", retry=retry, timeout=limits)
    proper = [
        (Status.RUNNING, Queue.RUNNING),
        (Status.SUCCESS, Queue.SUCCESS),
        (Status.SUCCESS, Queue.FINISH),
    ]

    def is_proper() -> bool:
        return transitions.changes == proper[: len(transitions.changes)]

    wait_until(
        lambda: deployment.client.get(job_id).is_final or not is_proper(),
        END_S,
        "it ends, or takes a wrong transition",
    )
    if without:  # do not wait for the effects of a wrong transition
        assert not is_proper() or found(job_id) != []
    else:
        wait_until(lambda: len(transitions.changes) >= len(proper), END_S, "its last transition is reported")
        assert found(job_id) == []
        assert transitions.changes == proper


def _closes(operation: Operation) -> bool:
    if not isinstance(operation, Set) or "/attempt-" not in operation.path:
        return False
    return bool(json.loads(operation.data)["state"] == "closed")
