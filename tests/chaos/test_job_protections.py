"""The tests of jobs notice when a protection is taken out; with all of them the same runs are clean."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.hooks import Hook
from orchestrator.models.job import JobState
from orchestrator.states import Queue, Status
from queues.operations import Operation, Set
from queues.session import Posted, Session
from spark_runner.runners.base import Submission, SubmitRequest
from tests.chaos.job_site import Site
from tests.crash_points import Point
from tests.job_mutations import Protection, take_out
from tests.jobs_support import Office, python_job
from tests.scripted.backend import Backend
from tests.scripted.judge import violations
from tests.scripted.runner import ScriptedRunner
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

END_S = 60
GIVEN_UP_S = 8
"""A job that is stuck is not waited for longer: with the protection it has ended within two."""


@pytest.mark.parametrize("without", ["", Protection.SLOT])
def test_a_cap_is_overshot_when_no_place_is_taken_in_the_intent(
    zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path, process_mark: str, without: str
) -> None:
    assert process_mark
    with Site(tmp_path, zookeeper_hosts, zookeeper_root, workers=2, slots=4, without=without) as site:
        site.cap_pool("capped", 2)
        for number in range(10):
            site.submit(f"j{number}", python_job("sleep(0.3)", pool="capped"), {Status.SUCCESS})
        site.wait_finished(END_S)
        site.drain()
        found = site.judge()
    assert [words for words in found if "ran at once" in words] == found
    assert bool(found) is bool(without)


class SubmitsTwice(ScriptedRunner):
    """What two workers may do that do not know of each other."""

    def submit(self, request: SubmitRequest) -> Submission:
        other = "f" * 32
        again = dataclasses.replace(request, incarnation=other, plan={**request.plan, "incarnation": other})
        super().submit(again)
        return super().submit(request)


@pytest.mark.parametrize("compares", [True, False])
def test_user_code_starts_twice_when_a_driver_does_not_ask_its_attempt(
    office: Office, *, compares: bool
) -> None:
    settings = office.settings
    with Backend(settings.state_dir, settings.zookeeper_hosts, compares=compares) as backend:
        office.worker(runner=SubmitsTwice(settings.state_dir))
        job_id = office.submit("sleep(0.3)")
        office.wait(job_id, timeout=END_S)
        backend.wait_idle()
        found = violations(office.client, backend.store.ledger, {job_id: {Status.SUCCESS}})
    assert found == ([] if compares else [f"{job_id}: the user code of attempt 1 was started 2 times"])


@pytest.mark.parametrize("without", ["", Protection.INTENT])
def test_user_code_runs_unannounced_when_a_driver_is_submitted_before_the_intent(
    office: Office, tmp_path: Path, without: str
) -> None:
    settings = office.settings
    config = worker_config(settings, "scripted", die_at=Point("accept>running", after=False), without=without)
    first = WorkerProcess("first", tmp_path, config, settings.zookeeper_hosts)
    with Backend(settings.state_dir, settings.zookeeper_hosts) as backend, worker_processes(first):
        job_id = office.submit("pass")
        first.wait_killed()
        first.end_session()
        office.worker(runner=ScriptedRunner(settings.state_dir))
        _wait_or_give_up(office, job_id)
        found = violations(office.client, backend.store.ledger, {job_id: {Status.SUCCESS}})
    assert any("nobody announced" in words for words in found) is bool(without)
    assert bool(found) is bool(without)


class Told(Hook):
    """What was told of the changes of jobs."""

    def __init__(self) -> None:
        self.changes: list[tuple[Status, Queue]] = []

    def after_transition(self, job_id: str, before: JobState, after: JobState, queue: Queue) -> None:
        assert job_id
        assert before
        self.changes.append((after.status, queue))


@pytest.fixture
def driver_is_faster(office: Office, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """A full cluster that starts the driver in the moment in which its worker gives the attempt up."""
    settings = office.settings
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


@pytest.mark.parametrize("without", ["", Protection.COMPARE, Protection.CONFLICT])
def test_an_attempt_is_given_up_under_its_driver_when_it_is_not_compared_or_the_refusal_not_heard(
    office: Office, driver_is_faster: Backend, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    if without:
        take_out(Protection(without), monkeypatch.setattr)
    told = Told()
    office.worker(runner=ScriptedRunner(office.settings.state_dir), hooks=[told])
    retry, limits = {"attempts": 1, "delay": "100ms"}, {"submit": 1}
    job_id = office.submit("sleep(0.5)", retry=retry, timeout=limits)
    office.wait(job_id, timeout=END_S)
    found: list[Any] = violations(office.client, driver_is_faster.store.ledger, {job_id: {Status.SUCCESS}})
    proper = [
        (Status.RUNNING, Queue.RUNNING),
        (Status.SUCCESS, Queue.SUCCESS),
        (Status.SUCCESS, Queue.FINISH),
    ]
    if told.changes != proper:
        found.append(told.changes)
    assert bool(found) is bool(without)


def _closes(operation: Operation) -> bool:
    if not isinstance(operation, Set) or "/attempt-" not in operation.path:
        return False
    return bool(json.loads(operation.data)["state"] == "closed")


def _wait_or_give_up(office: Office, job_id: str) -> None:
    try:
        wait_until(lambda: office.client.get(job_id).is_final, GIVEN_UP_S, "the job ends")
    except AssertionError:
        return  # the judgement tells
