"""`job kill --graceful`: a stream ends after its current micro-batch, whatever happens to its worker."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.cli.serve import _stop_running_jobs
from orchestrator.handlers import running, supervision
from orchestrator.handlers.liveness import killed
from orchestrator.model.errors import AlreadyEnded, NotStreaming
from orchestrator.model.states import Status
from queues import Set
from spark_runner.protocol.attempt import Attempt, AttemptState
from tests.jobs_support import Deployment, sleeps
from tests.streams_support import WAIT_S, Streams
from tests.waiting import wait_until


@pytest.mark.parametrize("mode", ["streaming", "available-now"])
def test_a_stream_ends_as_success_after_its_micro_batch_and_shows_who_stopped_it(
    streams: Streams, mode: str
) -> None:
    streams.worker()
    job_id = streams.submit(mode=mode)
    streams.wait_for_batch(job_id)
    hangs = streams.change("hangs")
    streams.client.kill(job_id, graceful=True)
    streams.wait_for_stopping(job_id)
    wait_until(lambda: streams.client.get(job_id).actions, WAIT_S, "the record shows the act")
    assert streams.client.get(job_id).status is Status.RUNNING
    assert streams.stop_exists(job_id)
    hangs.unlink()
    detail = streams.deployment.wait(job_id)
    assert (detail.job.status, detail.job.error) == (Status.SUCCESS, None)
    ((act),) = detail.job.actions
    assert (act.action, act.detail) == ("kill", "graceful")
    attempt = streams.attempt(job_id)
    assert attempt.state is AttemptState.SUCCEEDED
    assert attempt.document["tables"][0]["rows"] == attempt.document["streamed"]["rows"] > 0
    assert not streams.stop_exists(job_id)
    with pytest.raises(AlreadyEnded):
        streams.client.kill(job_id, graceful=True)


def test_a_kill_during_a_graceful_stop_ends_the_driver_at_once(streams: Streams) -> None:
    streams.worker()
    job_id = streams.submit()
    streams.wait_for_batch(job_id)
    streams.change("hangs")
    streams.client.kill(job_id, graceful=True)
    streams.wait_for_stopping(job_id)
    wait_until(lambda: streams.client.get(job_id).actions, WAIT_S, "the record shows the act")
    streams.client.kill(job_id, graceful=True)  # changes nothing
    streams.client.kill(job_id)
    streams.client.kill(job_id, graceful=True)  # does not weaken the kill
    detail = streams.deployment.wait(job_id)
    assert detail.job.status is Status.KILL
    assert [(act.action, act.detail) for act in detail.job.actions] == [("kill", "graceful"), ("kill", "")]
    assert streams.attempt(job_id).state is AttemptState.KILLED
    assert not streams.stop_exists(job_id)


def test_a_job_without_micro_batches_is_refused_and_runs_on(deployment: Deployment, tmp_path: Path) -> None:
    deployment.worker()
    job_id = deployment.submit(sleeps(tmp_path / "pid"))
    with pytest.raises(NotStreaming, match=f"`orchestrator job kill {job_id}` ends it at once"):
        deployment.client.kill(job_id, graceful=True)
    queues = deployment.queues
    assert queues.session.exists(queues.layout.stop("default", job_id)) is None
    deployment.client.kill(job_id)
    assert deployment.wait(job_id).job.status in {Status.KILL, Status.CANCEL}


def test_a_stream_that_has_not_started_is_cancelled(streams: Streams) -> None:
    job_id = streams.submit()
    streams.client.kill(job_id, graceful=True)
    streams.worker()
    assert streams.deployment.wait(job_id).job.status is Status.CANCEL
    assert streams.client.get(job_id).attempt == 0


def test_a_stream_whose_driver_has_not_started_is_cancelled(
    streams: Streams,
) -> None:
    streams.worker()
    late = streams.change("late")
    job_id = streams.submit()
    wait_until(lambda: streams.client.get(job_id).attempt, WAIT_S, "the attempt is announced")
    streams.client.kill(job_id, graceful=True)
    assert streams.deployment.wait(job_id).job.status is Status.CANCEL
    late.unlink()
    assert streams.attempt(job_id).state is AttemptState.KILLED


def test_a_driver_that_starts_while_its_job_is_cancelled_ends_after_a_micro_batch(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = streams.change("late")

    def killed_late(attempt: Attempt) -> Set:
        """The step that cancels, with the start of the driver before it."""
        operation = killed(attempt)
        if late.exists():
            late.unlink()
            wait_until(
                lambda: streams.attempt(job_id).state is not AttemptState.INTENT,
                WAIT_S,
                "the driver has started",
            )
        return operation

    monkeypatch.setattr(running, "killed", killed_late)
    streams.worker()
    job_id = streams.submit()
    wait_until((streams.folder / "is late").exists, WAIT_S, "the driver is submitted")
    streams.client.kill(job_id, graceful=True)
    assert streams.deployment.wait(job_id).job.status is Status.SUCCESS
    assert streams.attempt(job_id).state is AttemptState.SUCCEEDED


@pytest.mark.parametrize("failure", ["fails", "crashes"])
def test_a_driver_that_fails_after_the_request_is_not_retried(streams: Streams, failure: str) -> None:
    streams.worker()
    job_id = streams.submit()
    streams.wait_for_batch(job_id)
    streams.change(failure)
    streams.client.kill(job_id, graceful=True)
    detail = streams.deployment.wait(job_id)
    assert (detail.job.status, detail.job.attempt) == (Status.ERROR_FAIL, 1)
    assert detail.job.error is not None
    expected = "the last micro-batch has failed" if failure == "fails" else "SIGKILL"
    assert expected in detail.job.error.message
    assert not streams.stop_exists(job_id)


def test_a_request_holds_while_no_worker_is_there_and_for_the_next_one(streams: Streams) -> None:
    worker = streams.worker()
    job_id = streams.submit()
    streams.wait_for_batch(job_id)
    hangs = streams.change("hangs")
    worker.drain()
    streams.client.kill(job_id, graceful=True)
    streams.wait_for_stopping(job_id)
    streams.worker()
    wait_until(lambda: streams.client.get(job_id).actions, WAIT_S, "the next worker has read the request")
    assert streams.attempt(job_id).state is AttemptState.STARTED
    hangs.unlink()
    assert streams.deployment.wait(job_id).job.status is Status.SUCCESS


def test_a_stream_that_ends_while_no_worker_is_there_has_succeeded(streams: Streams) -> None:
    worker = streams.worker()
    job_id = streams.submit()
    streams.wait_for_batch(job_id)
    worker.drain()
    streams.client.kill(job_id, graceful=True)
    wait_until(
        lambda: streams.attempt(job_id).state is AttemptState.SUCCEEDED, WAIT_S, "the driver has obeyed"
    )
    streams.worker()
    detail = streams.deployment.wait(job_id)
    assert (detail.job.status, [act.detail for act in detail.job.actions]) == (Status.SUCCESS, ["graceful"])


def test_a_driver_lost_while_no_worker_is_there_ends_the_job(streams: Streams) -> None:
    worker = streams.worker()
    job_id = streams.submit()
    streams.wait_for_batch(job_id)
    streams.change("hangs")
    worker.drain()
    streams.client.kill(job_id, graceful=True)
    streams.wait_for_stopping(job_id)
    os.kill(int(streams.attempt(job_id).document["pid"]), signal.SIGKILL)
    streams.worker()
    detail = streams.deployment.wait(job_id)
    assert (detail.job.status, detail.job.attempt) == (Status.ERROR_FAIL, 1)


def test_a_time_limit_ends_a_stop_that_takes_too_long(streams: Streams) -> None:
    streams.worker()
    job_id = streams.submit(timeout={"run": "3s", "on_run": "retry"})
    streams.wait_for_batch(job_id)
    streams.change("hangs")
    streams.client.kill(job_id, graceful=True)
    detail = streams.deployment.wait(job_id)
    assert (detail.job.status, detail.job.attempt) == (Status.KILL, 1)  # the operator wants no other attempt


def test_errors_of_a_handler_are_retried_with_delays_during_a_graceful_stop(
    streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = streams.worker()
    job_id = streams.submit()
    streams.wait_for_batch(job_id)
    hangs = streams.change("hangs")
    worker.drain()
    streams.client.kill(job_id, graceful=True)
    tried, look = list[float](), supervision.look

    def failing(*arguments: Any) -> Any:
        tried.append(time.monotonic())
        if len(tried) > 1:
            return look(*arguments)
        raise RuntimeError("an error of the test")

    monkeypatch.setattr(supervision, "look", failing)
    streams.worker()
    wait_until(lambda: len(tried) > 1, WAIT_S, "it is tried again")
    assert tried[1] - tried[0] > 1.5  # the first delay is two seconds, and the request stays meanwhile
    hangs.unlink()
    assert streams.deployment.wait(job_id).job.status is Status.SUCCESS


def test_the_end_of_up_gives_streams_time_for_their_micro_batch(
    streams: Streams, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = streams.worker(slots=3)
    ends, (hung, hangs) = streams.submit(), other_stream(streams, tmp_path)
    batch = streams.deployment.submit(sleeps(tmp_path / "pid"))
    for job_id in (ends, hung):
        streams.wait_for_batch(job_id)
    wait_until(lambda: streams.is_started(batch), WAIT_S, "the job without micro-batches runs")
    worker.stop_accepting()
    _stop_running_jobs(streams.client, worker, False, grace=4.0)
    found = {job_id: streams.client.get(job_id).status for job_id in (ends, hung, batch)}
    assert found == {ends: Status.SUCCESS, hung: Status.KILL, batch: Status.KILL}
    assert hangs.exists()
    assert sorted(capsys.readouterr().err.splitlines()) == sorted(
        [
            *(f"stopping {job_id} after its current micro-batch" for job_id in (ends, hung)),
            *(f"stopping {job_id}" for job_id in (hung, batch)),
        ]
    )


def other_stream(streams: Streams, folder: Path) -> tuple[str, Path]:
    """A stream in another folder, whose micro-batch does not end."""
    other = Streams(streams.deployment, folder / "other")
    hangs = other.change("hangs")
    return other.submit(name="other"), hangs


def test_the_command_refuses_a_job_without_micro_batches_and_asks_a_stream(streams: Streams) -> None:
    worker = streams.worker()
    stream, batch = streams.submit(), streams.submit(name="batch", mode="")
    for job_id in (stream, batch):
        streams.wait_for_batch(job_id)
    worker.drain()
    settings = streams.deployment.settings
    variables = {"ZOOKEEPER_HOSTS": settings.zookeeper_hosts, "ORCHESTRATOR_ROOT": settings.root}
    found = CliRunner().invoke(app, ["job", "kill", "--graceful", batch, stream], env=variables)
    assert found.exit_code == 5
    assert f"`orchestrator job kill {batch}` ends it at once" in found.stderr
    assert f"asked to end {stream} after its current micro-batch" in found.stderr
    assert (streams.stop_exists(batch), streams.stop_exists(stream)) == (False, True)
    streams.worker()
    streams.client.kill(batch)
    assert streams.deployment.wait(stream).job.status is Status.SUCCESS
    streams.deployment.wait(batch)
