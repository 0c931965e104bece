"""Attempts with nodes named `attempt-<n>`, from before the name had the run key, continue unchanged."""

import pytest

from orchestrator.model.states import Queue, Status
from queues.model.operations import Create, Delete, Operation
from spark_runner.protocol.attempt import AttemptState, attempt_path
from tests.jobs_support import Deployment
from tests.operators_support import JOB, Stage
from tests.waiting import wait_until


def with_earlier_name(stage: Stage) -> None:
    """Give the node of the job's first attempt the name that it had before."""
    path = attempt_path(stage.queues.layout.record(JOB), stage.queues.get(JOB).run_key, 1)
    found = stage.session.get(path)
    assert found is not None
    earlier = f"{path.rpartition('/')[0]}/attempt-1"
    again: list[Operation] = [Delete(path), Create(earlier, found[0])]
    stage.commit(*again)


def test_a_job_that_has_ended_is_shown_with_them_and_removed_with_them(
    deployment: Deployment, stage: Stage
) -> None:
    stage.put(Queue.FINISH, Status.SUCCESS, AttemptState.SUCCEEDED)
    with_earlier_name(stage)
    assert [each["state"] for each in stage.client.detail(JOB).attempts] == [AttemptState.SUCCEEDED]
    deployment.worker()
    wait_until(lambda: not stage.queues.contains(JOB), 20, "it is removed")


@pytest.mark.parametrize("reached", [AttemptState.SUCCEEDED, AttemptState.FAILED])
def test_a_job_whose_driver_has_ended_meanwhile_ends_as_that_says(
    deployment: Deployment, stage: Stage, reached: AttemptState
) -> None:
    stage.put(Queue.RUNNING, None, reached)
    with_earlier_name(stage)
    deployment.worker()
    ended = Status.SUCCESS if reached is AttemptState.SUCCEEDED else Status.ERROR_FAIL
    assert deployment.wait(JOB, timeout=20).job.status is ended
