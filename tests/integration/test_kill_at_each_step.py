"""A kill is effective in every state of a job: a waiting one never starts, a running one leaves nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.compose import DRIVER_MAIN
from orchestrator.model.errors import AlreadyEnded
from orchestrator.model.states import Queue, Status
from spark_runner.protocol.attempt import run_name
from spark_runner.protocol.errors import SubmissionError
from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import Runner, Submission, SubmitRequest
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import Office, stand_ins
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("judged")

SLEEPS = "import time; time.sleep(600)"
SOON = {"attempts": 2, "delay": "1h"}  # the next attempt is not before the end of the test


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.handlers.running._OBEY_SECONDS", 0.5)  # an idle driver obeys no request


class Full(LocalRunner):
    """A backend that refuses every submission."""

    def submit(self, request: SubmitRequest) -> Submission:
        raise SubmissionError(f"no room for {request.name}")


def runner(office: Office, kind: str) -> Runner:
    directory = office.settings.state_dir
    match kind:
        case "full":
            return Full(stand_ins(directory), driver_main=DRIVER_MAIN)
        case "idle":  # the started process never takes its attempt
            return LocalRunner(
                SparkSubmits(directory, spark_submit=("/bin/sh", "-c", "sleep 600")), driver_main=DRIVER_MAIN
            )
        case _:
            return office.runner()


def paused(office: Office) -> str:
    office.queues.ensure_pool()  # before anything was put
    office.client.pause("default")
    return office.submit(SLEEPS)


def waits_for_its_backend(office: Office) -> str:
    job_id = office.submit(SLEEPS, retry=SOON)
    wait_until(lambda: _is_at(office, job_id, Queue.ACCEPT, 1), 30, "its submission has failed")
    return job_id


def submitted(office: Office) -> str:
    job_id = office.submit(SLEEPS)
    wait_until(lambda: _processes(office, job_id), 30, "something was started for it")
    return job_id


def running(office: Office) -> str:
    job_id = office.submit(SLEEPS)
    wait_until(lambda: office.client.progress(office.client.get(job_id)), 30, "it runs")
    return job_id


def warned(office: Office) -> str:
    job_id = office.submit(SLEEPS, timeout={"stall": "500ms"})
    wait_until(lambda: office.client.get(job_id).status is Status.RUNNING_WARN, 30, "it is warned")
    return job_id


def waits_for_its_next_attempt(office: Office) -> str:
    job_id = office.submit("raise ValueError", retry=SOON)
    wait_until(lambda: _is_at(office, job_id, Queue.ACCEPT, 1), 30, "it has failed once")
    return job_id


def _is_at(office: Office, job_id: str, queue: Queue, attempt: int) -> bool:
    view = office.client.get(job_id)
    return (view.queue, view.attempt) == (queue, attempt)


def _processes(office: Office, job_id: str) -> list[int]:
    detail = office.client.detail(job_id)
    return processes_of(run_name(detail.run_key, 1)) if detail.job.attempt else []


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(
    ("comes_there", "kind", "end"),
    [
        (paused, "", (Status.CANCEL, [])),
        (waits_for_its_backend, "full", (Status.CANCEL, ["closed"])),
        (submitted, "idle", (Status.CANCEL, ["killed"])),
        (running, "", (Status.KILL, ["killed"])),
        (warned, "", (Status.KILL, ["killed"])),
        (waits_for_its_next_attempt, "", (Status.CANCEL, ["failed"])),
    ],
)
def test_a_kill_counts_wherever_the_job_is(
    office: Office,
    comes_there: Callable[[Office], str],
    kind: str,
    end: tuple[Status, list[str]],
    held: bool,
) -> None:
    worker = office.worker(runner=runner(office, kind))
    job_id = comes_there(office)
    if not held:  # no worker watches it at the moment of the kill
        worker.drain()
    office.client.kill(job_id)
    if not held:
        office.worker(runner=runner(office, kind))
    detail = office.wait(job_id, timeout=40)
    assert (detail.job.status, [attempt["state"] for attempt in detail.attempts]) == end
    assert processes_of(run_name(detail.run_key, 1)) == []
    assert office.session().children(f"{office.settings.root}/stops/default") == []


def test_an_ended_job_cannot_be_killed(office: Office, tmp_path: Path) -> None:
    office.worker()
    job_id = office.submit(f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert office.wait(job_id).job.status is Status.SUCCESS
    with pytest.raises(AlreadyEnded):
        office.client.kill(job_id)
    assert office.client.get(job_id).status is Status.SUCCESS
