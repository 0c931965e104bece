"""A job that kills each worker that handles it is moved to dead, so that the other workers survive."""

from pathlib import Path

import pytest

from orchestrator.handlers.actions import Action, SetStatus, Wait
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.poison import MAX_CLAIMS
from orchestrator.model.states import Queue, Status
from orchestrator.worker.dispatcher import HANDLERS
from spark_runner.protocol.attempt import AttemptState
from tests.crash_points import Point
from tests.jobs_support import Deployment, ScriptedDeployment
from tests.operators_support import JOB, Stage
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

_DEATHS = 2
"""Real workers, beside those that the test simulates: each takes three seconds."""


def test_a_job_that_kills_each_worker_in_its_submission_goes_to_dead_and_runs_when_it_is_brought_back(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    deployment = scripted_deployment
    job_id = deployment.submit("pass", retry={"attempts": 1, "delay": "0s"})
    config = worker_config(deployment.settings, "scripted", die_at=Point("submit", after=False))
    workers = [
        WorkerProcess(f"worker-{number}", tmp_path, config, deployment.settings.zookeeper_hosts)
        for number in range(_DEATHS + 2)
    ]
    first, *others, last = workers
    with worker_processes():
        dies(first)  # with its intent written
        for _ in range(MAX_CLAIMS - _DEATHS):
            deployment.queues.claim_by_id(job_id).release()  # deletes the lock and changes nothing else
        for worker in others:
            dies(worker)
        try:
            last.start()
            wait_until(lambda: deployment.client.get(job_id).queue is Queue.DEAD, 60, "it is in dead")
            assert last.is_running
        finally:
            last.kill()
            last.end_session()
    detail = deployment.client.detail(job_id)
    assert detail.job.error is not None
    assert f"claimed {MAX_CLAIMS + 1} times in running" in detail.job.error.message
    assert [attempt["state"] for attempt in detail.attempts] == [AttemptState.CLOSED]
    (replayed,) = deployment.client.replay([job_id])
    assert replayed.error is None
    deployment.worker()
    assert deployment.wait(job_id).job.status is Status.SUCCESS


def dies(worker: WorkerProcess) -> None:
    """Start it and wait until it dies at its point; its claims are free at once."""
    worker.start()
    try:
        worker.wait_killed()
    finally:
        worker.kill()
    worker.end_session()


# ---------------------------------------------------------------------- each queue
INTENT, STARTED, CLOSED = AttemptState.INTENT, AttemptState.STARTED, AttemptState.CLOSED

MOVED_TO_DEAD = [
    pytest.param(Queue.ACCEPT, None, [], id="accept"),
    pytest.param(Queue.ACCEPT, None, [CLOSED], id="accept-again"),
    pytest.param(Queue.RUNNING, None, [INTENT], id="intent"),
    pytest.param(Queue.RUNNING, Status.RUNNING_WARN, [INTENT], id="intent-warn"),
    pytest.param(Queue.RUNNING, None, [CLOSED], id="closed"),
    pytest.param(Queue.SUCCESS, None, [AttemptState.SUCCEEDED], id="success"),
    pytest.param(Queue.FAIL, None, [AttemptState.FAILED], id="fail"),
    pytest.param(Queue.KILL, None, [INTENT], id="kill-intent"),
    pytest.param(Queue.KILL, None, [AttemptState.KILLED], id="kill"),
    pytest.param(Queue.KILL, Status.CANCEL, [], id="cancel"),
    pytest.param(Queue.FINISH, Status.SUCCESS, [AttemptState.SUCCEEDED], id="finish"),
]


def claimed_too_often(
    deployment: Deployment, queue: Queue, status: Status | None, attempts: list[AttemptState]
) -> Stage:
    stage = Stage(deployment)
    stage.put(queue, status, *attempts)
    for _ in range(MAX_CLAIMS):
        stage.hold().release()
    return stage


@pytest.mark.parametrize(("queue", "status", "attempts"), MOVED_TO_DEAD)
def test_a_job_that_no_worker_outlives_goes_to_dead_from_everywhere_with_its_intent_closed(
    deployment: Deployment, queue: Queue, status: Status | None, attempts: list[AttemptState]
) -> None:
    stage = claimed_too_often(deployment, queue, status, attempts)
    deployment.worker()
    wait_until(lambda: stage.client.get(JOB).queue is Queue.DEAD, 20, "it is in dead")
    detail = stage.client.detail(JOB)
    assert detail.job.error is not None
    assert detail.job.error.type == "TooManyClaims"
    closed = AttemptState.KILLED if queue is Queue.KILL else CLOSED
    states = [closed if reached is INTENT else reached for reached in attempts]
    assert [attempt["state"] for attempt in detail.attempts] == states


@pytest.mark.parametrize("queue", [Queue.RUNNING, Queue.KILL])
def test_a_job_whose_driver_may_run_is_not_moved_to_dead(deployment: Deployment, queue: Queue) -> None:
    stage = claimed_too_often(deployment, queue, None, [STARTED])
    worker = deployment.worker()
    wait_until(worker.dispatcher.timers.parked, 20, "it was handled, and waits")
    assert stage.client.get(JOB).queue is queue
    assert [attempt["state"] for attempt in stage.client.detail(JOB).attempts] == [STARTED]


def test_a_job_that_has_run_while_its_workers_came_and_went_ends_as_it_ended(deployment: Deployment) -> None:
    stage = claimed_too_often(deployment, Queue.RUNNING, None, [STARTED])
    attempt = stage.client.attempt(stage.client.get(JOB))
    assert attempt is not None
    stage.commit(attempt.advance(AttemptState.SUCCEEDED))
    deployment.worker()
    assert deployment.wait(JOB, timeout=20).job.status is Status.SUCCESS


def test_a_warning_about_a_job_does_not_reset_the_count_of_its_claims(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def warn(job: JobContext) -> Action:
        is_warned = job.state.status is Status.RUNNING_WARN
        return Wait(60) if is_warned else SetStatus(Status.RUNNING_WARN, {"warning": "its backend is silent"})

    monkeypatch.setitem(HANDLERS, Queue.RUNNING, warn)
    stage = claimed_too_often(deployment, Queue.RUNNING, None, [STARTED])
    worker = deployment.worker()
    wait_until(worker.dispatcher.timers.parked, 20, "it has the warning, and waits")
    record = stage.queues.get(JOB)
    assert (record.payload["status"], record.claims) == (Status.RUNNING_WARN, MAX_CLAIMS + 1)
