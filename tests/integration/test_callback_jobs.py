"""Callbacks at the end of jobs, through real queues, workers and receivers."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from orchestrator.handlers import notices
from orchestrator.model.job import CallbackState
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue, Status
from tests.jobs_support import Deployment, ScriptedDeployment, python_job
from tests.queues_support import expire
from tests.receiver import ACKNOWLEDGED, REFUSED, Answerer, Receiver, override, receiver
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

NO_DELAY = {"delay": 0}


@pytest.fixture
def deployment(scripted_deployment: ScriptedDeployment) -> Deployment:
    """Scripted drivers: the callback at the end of a job does not depend on what ran."""
    return scripted_deployment


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of this process retry failed callbacks at once."""
    monkeypatch.setattr(notices, "FIRST_DELAY_SECONDS", 0.05)


def counting(runs: Path, program: str = "") -> str:
    """A program that records each of its runs."""
    return f"with open({str(runs)!r}, 'a') as file: file.write('x')\n{program}"


def submit(deployment: Deployment, there: Receiver, program: str = "pass", **fields: object) -> str:
    callback = {"url": there.url, **dict(fields.pop("callback", {}))}  # type: ignore[call-overload]  # of a mapping
    return deployment.submit(program, callback=callback, **fields)


def ended(deployment: Deployment, job_id: str, timeout: float = 60) -> JobView:
    return deployment.wait(job_id, timeout).job


# ---------------------------------------------------------------------- content
def test_a_success_is_reported_with_the_content_of_the_record(deployment: Deployment) -> None:
    deployment.worker()
    with receiver() as there:
        view = ended(deployment, submit(deployment, there, labels={"team": "x"}))
    assert view.status is Status.SUCCESS
    assert view.callback == CallbackState(attempts=1, done=True)
    assert [call.body for call in there.requests] == [
        {
            "version": 2,
            "event": "end",
            "number": 1,
            "id": view.id,
            "run_key": deployment.client.detail(view.id).run_key,
            "name": "test",
            "labels": {"team": "x"},
            "pool": "default",
            "status": "SUCCESS",
            "previous_status": "RUNNING",
            "attempt": 1,
            "times": {
                "created": view.created,
                "first_started": view.started,
                "started": view.started,
                "ended": view.ended,
            },
            "seconds": there.requests[0].body["seconds"],
            "backend": "local",
            "cluster": None,
            "host": "scripted",
            "application_id": view.application_id,
            "ui": None,
            "history": None,
            "fire_time": None,
            "counters": {"failures": 0, "submissions": 0, "demotions": 0},
            "monitor": there.requests[0].body["monitor"],
            "warning": None,
            "error": None,
            "written": None,
        }
    ]
    assert view.started is not None
    assert view.ended is not None
    assert 0 <= there.requests[0].body["seconds"] < 60


def test_only_the_last_failure_is_reported(deployment: Deployment) -> None:
    deployment.worker()
    with receiver() as there:
        retry = {"attempts": 3, **NO_DELAY}
        view = ended(deployment, submit(deployment, there, "raise ValueError('no such thing')", retry=retry))
    (call,) = there.requests
    assert view.status is Status.ERROR_FAIL
    assert (call.body["status"], call.body["attempt"]) == ("ERROR_FAIL", 3)
    assert call.body["counters"]["failures"] == 3 == view.failures
    assert call.body["error"] == {"class": "user", "type": "ValueError", "message": "no such thing"}


def test_a_job_that_finally_succeeds_is_reported_only_as_successful(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    runs = tmp_path / "runs"
    program = counting(runs, "assert attempt == 2")
    with receiver() as there:
        view = ended(deployment, submit(deployment, there, program, retry={"attempts": 3, **NO_DELAY}))
    assert [(call.body["status"], call.body["attempt"]) for call in there.requests] == [("SUCCESS", 2)]
    assert view.callback == CallbackState(attempts=1, done=True)


def test_a_job_that_is_killed_is_reported_as_killed(deployment: Deployment, tmp_path: Path) -> None:
    deployment.worker()
    runs = tmp_path / "runs"
    with receiver() as there:
        job_id = submit(deployment, there, counting(runs, "hang()"))
        wait_until(runs.exists, 30, "it runs")
        deployment.client.kill(job_id)
        assert ended(deployment, job_id).status is Status.KILL
    assert [call.body["status"] for call in there.requests] == ["KILL"]


def test_a_job_that_is_cancelled_before_it_starts_is_reported_as_cancelled(deployment: Deployment) -> None:
    deployment.worker()
    with receiver() as there:
        callback = {"url": there.url}
        job_id = deployment.client.submit(python_job("pass", callback=callback), delay=3600).id
        deployment.client.kill(job_id)
        assert ended(deployment, job_id).status is Status.CANCEL
    assert [(call.body["status"], call.body["attempt"]) for call in there.requests] == [("CANCEL", 0)]


# ---------------------------------------------------------------------- retries
@pytest.mark.usefixtures("soon")
def test_every_retry_reports_the_same_and_a_delivered_one_leaves_no_error(deployment: Deployment) -> None:
    deployment.worker()
    deployment.worker()
    with receiver(REFUSED, REFUSED, REFUSED, ACKNOWLEDGED) as there:
        view = ended(deployment, submit(deployment, there, "raise ValueError('x')"))
    assert view.status is Status.ERROR_FAIL
    assert view.failures == 1
    assert view.callback == CallbackState(attempts=4, done=True)
    assert len({(call.data, call.headers["Idempotency-Key"]) for call in there.requests}) == 1
    assert len(there.requests) == 4


@pytest.mark.usefixtures("soon")
def test_a_receiver_that_never_answers_well_is_given_up_with_the_error_on_record(
    deployment: Deployment,
) -> None:
    deployment.worker()
    with receiver(REFUSED) as there:
        view = ended(deployment, submit(deployment, there, callback={"attempts": 3}))
    assert view.status is Status.SUCCESS
    assert (view.callback.attempts, view.callback.done) == (3, True)
    assert '"BUSY"' in str(view.callback.error)
    assert len(there.requests) == 3


def test_while_it_waits_the_job_keeps_status_and_queue_and_its_error_can_be_seen(
    deployment: Deployment,
) -> None:
    deployment.worker()
    with receiver(REFUSED) as there:
        job_id = submit(deployment, there)
        view = wait_until(lambda: waiting(deployment, job_id), 30, "a try has failed")
    assert (view.status, view.queue) == (Status.SUCCESS, Queue.SUCCESS)
    assert view.callback.error is not None
    assert not view.is_final
    assert deployment.client.detail(job_id).held_by is None


def waiting(deployment: Deployment, job_id: str) -> JobView | None:
    view = deployment.client.get(job_id)
    return view if view.callback.attempts else None


def test_errors_can_be_ignored(deployment: Deployment) -> None:
    deployment.worker()
    with receiver(REFUSED) as there:
        view = ended(deployment, submit(deployment, there, callback={"ignore_errors": True}))
    assert view.status is Status.SUCCESS
    assert view.callback.error is not None
    assert len(there.requests) == 1


def test_a_missing_variable_is_on_record(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    deployment.worker()
    callback = {"url": "${env:NOT_THERE}/x?secret=1", "attempts": 1}
    view = ended(deployment, deployment.submit("pass", callback=callback))
    reason = "the environment of this worker has no variable NOT_THERE"
    assert view.callback.error == f"${{env:NOT_THERE}}: {reason}"


def test_many_jobs_are_reported_through_few_slots(deployment: Deployment) -> None:
    deployment.worker(slots=4)
    with receiver() as there:
        ids = [submit(deployment, there) for _ in range(20)]
        for job_id in ids:
            assert ended(deployment, job_id).callback == CallbackState(attempts=1, done=True)
        assert sorted(call.body["id"] for call in there.requests) == sorted(ids)


# ---------------------------------------------------------------------- stops
@pytest.mark.parametrize("program", ["pass", "raise ValueError"])
def test_a_job_that_is_killed_while_its_callback_waits_finishes_as_it_had_ended(
    deployment: Deployment, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "FIRST_DELAY_SECONDS", 250.0)
    deployment.worker()
    with receiver(REFUSED) as there:
        job_id = submit(deployment, there, program)
        status = wait_until(lambda: waiting(deployment, job_id), 30, "a try has failed").status
        deployment.client.kill(job_id)
        view = ended(deployment, job_id)
    assert view.status is status
    assert view.callback.attempts == 2 == len(there.requests)
    assert view.callback.error is not None


def test_the_callback_of_a_killed_job_is_retried_after_its_delay_and_not_at_once(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "FIRST_DELAY_SECONDS", 250.0)
    deployment.worker()
    runs = tmp_path / "runs"
    with receiver(REFUSED, ACKNOWLEDGED) as there:
        job_id = submit(deployment, there, counting(runs, "hang()"))
        wait_until(runs.exists, 30, "it runs")
        deployment.client.kill(job_id)
        wait_until(lambda: waiting(deployment, job_id), 30, "a try has failed")
        # The stop request overrides a due time; the failed try has removed it.
        stop = f"{deployment.settings.root}/stops/default/{job_id}"
        assert deployment.session().exists(stop) is None
        assert len(there.requests) == 1
        deployment.client.kill(job_id)  # which makes its callback due at once
        view = ended(deployment, job_id)
    assert (view.status, view.callback.attempts) == (Status.KILL, 2)
    assert there.requests[0] == there.requests[1]


# ---------------------------------------------------------------------- answers
def test_the_answer_can_make_a_failure_of_a_success_and_the_other_way_round(deployment: Deployment) -> None:
    deployment.worker()
    with receiver(override("ERROR_FAIL")) as strict, receiver(override("SUCCESS")) as mild:
        failed = ended(deployment, submit(deployment, strict, retry={"attempts": 3}))
        passed = ended(deployment, submit(deployment, mild, "raise ValueError"))
    assert (failed.status, failed.attempt, failed.failures) == (Status.ERROR_FAIL, 1, 1)
    assert failed.error is not None
    assert failed.error.error_class == "callback"
    assert list(failed.times) == ["accept", "running", "success", "fail", "finish"]
    assert (passed.status, passed.failures) == (Status.SUCCESS, 1)
    assert (len(strict.requests), len(mild.requests)) == (1, 1)
    assert failed.callback == passed.callback == CallbackState(attempts=1, done=True)


def test_the_answer_can_rerun_a_failed_job_whose_end_is_then_reported_anew(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    runs = tmp_path / "runs"
    program = counting(runs, "assert attempt == 2")
    with receiver(override("ACCEPT"), ACKNOWLEDGED) as there:
        view = ended(deployment, submit(deployment, there, program, retry={"attempts": 1, **NO_DELAY}))
    assert (view.status, view.attempt, view.failures) == (Status.SUCCESS, 2, 1)
    assert [call.body["status"] for call in there.requests] == ["ERROR_FAIL", "SUCCESS"]
    assert len({call.headers["Idempotency-Key"] for call in there.requests}) == 2
    assert view.callback == CallbackState(attempts=1, done=True)


def test_the_answer_can_have_a_success_run_again_where_the_definition_names_that(
    deployment: Deployment,
) -> None:
    deployment.worker()
    retry = {"attempts": 2, "on": ["callback"], **NO_DELAY}
    with receiver(override("ERROR_FAIL"), ACKNOWLEDGED) as there:
        view = ended(deployment, submit(deployment, there, retry=retry))
    assert (view.status, view.attempt, view.failures) == (Status.SUCCESS, 2, 1)
    assert [call.body["attempt"] for call in there.requests] == [1, 2]


@pytest.mark.parametrize("answered", ["ACCEPT", "RUNNING", "KILL", "DEAD", "what is this"])
def test_an_answer_that_cannot_be_is_on_record_and_changes_nothing(
    deployment: Deployment, answered: str
) -> None:
    deployment.worker()
    with receiver(override(answered)) as there:
        view = ended(deployment, submit(deployment, there))
    assert view.status is Status.SUCCESS
    assert "cannot follow SUCCESS" in str(view.callback.error)
    assert len(there.requests) == 1


# ---------------------------------------------------------------------- faults
def worker_process(deployment: Deployment, folder: Path) -> WorkerProcess:
    """A worker in another process, so that it can be killed."""
    settings = deployment.settings
    return WorkerProcess("first", folder, worker_config(settings, "scripted"), settings.zookeeper_hosts)


def hold_back(there: Callable[[], Receiver]) -> Answerer:
    """An answer that does not come during the test."""

    def wait(request: BaseHTTPRequestHandler) -> None:
        there().released.wait(60)
        ACKNOWLEDGED(request)

    return wait


@pytest.mark.parametrize("program", ["pass", "raise ValueError('x')"], ids=["success", "failure"])
def test_after_a_worker_was_killed_during_a_callback_another_one_reports_the_same(
    deployment: Deployment, tmp_path: Path, program: str
) -> None:
    runs = tmp_path / "runs"
    with receiver(hold_back(lambda: there), ACKNOWLEDGED) as there:
        first = worker_process(deployment, tmp_path)
        with worker_processes(first):
            job_id = submit(deployment, there, counting(runs, program), callback={"timeout": 60})
            there.wait_requests(1)
            first.kill()
        first.end_session()
        deployment.worker()
        view = ended(deployment, job_id)
    assert there.requests[0] == there.requests[1]
    assert len(there.requests) == 2
    assert view.status is (Status.SUCCESS if program == "pass" else Status.ERROR_FAIL)
    assert view.failures == (0 if program == "pass" else 1)
    assert view.callback == CallbackState(attempts=1, done=True)
    assert runs.read_text() == "x"


def test_a_worker_that_is_killed_between_tries_has_another_go_on(
    deployment: Deployment, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    with receiver(REFUSED, ACKNOWLEDGED) as there:
        first = worker_process(deployment, tmp_path)
        with worker_processes(first):
            job_id = submit(deployment, there, counting(runs, "raise ValueError('x')"))
            wait_until(lambda: waiting(deployment, job_id), 60, "a try has failed")
            first.kill()
        first.end_session()
        deployment.worker()
        view = ended(deployment, job_id)
    assert there.requests[0] == there.requests[1]
    assert (view.status, view.failures) == (Status.ERROR_FAIL, 1)
    assert view.callback == CallbackState(attempts=2, done=True)
    assert runs.read_text() == "x"


def test_after_a_session_loss_during_the_call_another_worker_makes_the_callback(
    deployment: Deployment, tmp_path: Path
) -> None:
    worker = deployment.worker()
    runs = tmp_path / "runs"
    with receiver(hold_back(lambda: there), ACKNOWLEDGED) as there:
        job_id = submit(deployment, there, counting(runs), callback={"timeout": 60})
        there.wait_requests(1)
        deployment.worker()
        expire(worker._set.session)  # noqa: SLF001 - the event under test
        there.wait_requests(2)
        there.released.set()
        view = ended(deployment, job_id)
    assert there.requests[0] == there.requests[1]
    assert (view.status, view.callback) == (Status.SUCCESS, CallbackState(attempts=1, done=True))
    assert runs.read_text() == "x"


# ---------------------------------------------------------------------- time limits
def test_a_job_that_runs_for_too_long_can_go_on_in_the_low_lane(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    runs = tmp_path / "runs"
    program = counting(runs, "if attempt == 1: hang()")
    with receiver() as there:
        fields: dict[str, object] = {"timeout": {"run": 1, "on_run": "demote"}, "retry": NO_DELAY}
        view = ended(deployment, submit(deployment, there, program, **fields))
    assert (view.status, view.pool, view.attempt) == (Status.SUCCESS, "default.low", 2)
    (call,) = there.requests
    assert call.body["counters"] == {"failures": 0, "submissions": 0, "demotions": 1}


def test_a_job_that_runs_for_too_long_there_too_ends_in_dead(deployment: Deployment, tmp_path: Path) -> None:
    deployment.worker()
    runs = tmp_path / "runs"
    with receiver() as there:
        fields: dict[str, object] = {
            "timeout": {"run": 1, "on_run": "demote"},
            "retry": {"attempts": 1, **NO_DELAY},
        }
        job_id = submit(deployment, there, counting(runs, "hang()"), **fields)
        view = ended(deployment, job_id)
        assert there.requests == []
    assert (view.queue, view.pool, view.attempt) == (Queue.DEAD, "default.low", 2)
    assert view.error is not None
    assert "after 1 demotions" in view.error.message
    assert runs.read_text() == "xx"
