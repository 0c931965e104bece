import json
import os
import signal
from pathlib import Path

import pytest

from orchestrator.compose import DRIVER_MAIN
from orchestrator.handlers.poison import MAX_CLAIMS
from orchestrator.model.definition import build_definition
from orchestrator.model.errors import AlreadyEnded
from orchestrator.model.plan import plan_path
from orchestrator.model.states import Queue, Status
from queues.model.errors import IdTaken, ItemNotFound
from queues.model.operations import Create, Delete, Set
from queues.store.commit import commit
from spark_runner.protocol.attempt import attempt_path, run_name
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import BuggyRunner, Deployment, python_job, stand_ins
from tests.waiting import wait_until


def test_a_job_passes_the_queues_and_ends_in_finish_as_success(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    job_id = deployment.submit(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')")
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.SUCCESS
    assert list(detail.job.times) == ["accept", "running", "success", "finish"]
    assert [attempt["state"] for attempt in detail.attempts] == ["succeeded"]
    assert (tmp_path / "ran").read_text() == "x"
    assert detail.held_by is None
    assert {queue: deployment.client.count(queue) for queue in Queue if deployment.client.count(queue)} == {
        Queue.FINISH: 1
    }


@pytest.mark.parametrize(
    ("program", "error_class", "message"),
    [
        ("raise ValueError('no such thing')", "user", "no such thing"),
        ("import sys; sys.exit(3)", "user", "exited with code 3"),
        ("import sys; print('why', file=sys.stderr); sys.exit(3)", "user", "exited with code 3: why"),
        ("import sys; sys.exit('no rows today')", "user", "no rows today"),
        ("raise MemoryError", "memory", "MemoryError"),
        ("import os; os._exit(4)", "user", "exit code 4"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "infrastructure", "SIGKILL"),
        ("compile('this is no python', 'x', 'exec')", "definition", "invalid syntax"),
    ],
)
def test_a_failure_ends_as_error_fail_with_its_reason(
    deployment: Deployment, program: str, error_class: str, message: str
) -> None:
    deployment.worker()
    detail = deployment.wait(deployment.submit(program))
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.error is not None
    assert detail.job.error.error_class == error_class
    assert message in detail.job.error.message
    assert [attempt["state"] for attempt in detail.attempts] == ["failed"]


def test_exit_with_zero_is_a_success(deployment: Deployment) -> None:
    deployment.worker()
    assert deployment.wait(deployment.submit("import sys; sys.exit()")).job.status is Status.SUCCESS


def test_exit_with_zero_and_no_outcome_is_an_error_of_its_own_that_is_retried_where_that_is_asked_for(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    program = f"""
import os, pathlib
seen = pathlib.Path({str(tmp_path / "seen")!r})
if not seen.exists():
    seen.touch()
    os._exit(0)
"""
    detail = deployment.wait(deployment.submit(program, retry={"attempts": 2, "delay": "0s"}))
    assert (detail.job.status, len(detail.attempts)) == (Status.ERROR_FAIL, 1)
    assert detail.job.error is not None
    assert detail.job.error.error_class == "no_outcome"
    assert "reported no outcome" in detail.job.error.message
    (tmp_path / "seen").unlink()
    again = {"attempts": 2, "delay": "0s", "on": ["no_outcome"]}
    detail = deployment.wait(deployment.submit(program, retry=again))
    states = [attempt["state"] for attempt in detail.attempts]
    assert (detail.job.status, states) == (Status.SUCCESS, ["failed", "succeeded"])


def test_a_driver_that_ends_before_it_begins_closes_the_attempt(
    deployment: Deployment, tmp_path: Path
) -> None:
    broken = LocalRunner(
        SparkSubmits(tmp_path / "broken", spark_submit=("/bin/false",)), driver_main=DRIVER_MAIN
    )
    deployment.worker(runner=broken)
    detail = deployment.wait(deployment.submit("pass"))
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.error is not None
    assert detail.job.error.error_class == "submission"
    assert [attempt["state"] for attempt in detail.attempts] == ["closed"]


def test_a_failed_job_is_run_again_after_its_delay_with_a_new_attempt(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    program = f"""
import pathlib
seen = pathlib.Path({str(tmp_path / "seen")!r})
seen.write_text(seen.read_text() + 'x' if seen.exists() else 'x')
assert len(seen.read_text()) == 3, 'not yet'
"""
    retry = {"attempts": 5, "delay": "200ms", "factor": 1}
    detail = deployment.wait(deployment.submit(program, retry=retry))
    assert detail.job.status is Status.SUCCESS
    assert [attempt["state"] for attempt in detail.attempts] == ["failed", "failed", "succeeded"]
    assert (tmp_path / "seen").read_text() == "xxx"


def test_only_errors_of_the_chosen_kinds_are_run_again(deployment: Deployment) -> None:
    deployment.worker()
    retry = {"attempts": 5, "delay": "100ms", "on": ["lost"]}
    detail = deployment.wait(deployment.submit("raise ValueError('mine')", retry=retry))
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.attempt == 1


@pytest.mark.parametrize(
    "program", ["import no_such_module", "open('/no/such/file')", "eval('1 +')", "prnt(1)"]
)
def test_errors_that_cannot_change_are_not_run_again_whatever_the_attempts(
    deployment: Deployment, program: str
) -> None:
    deployment.worker()
    detail = deployment.wait(deployment.submit(program, retry={"attempts": 5, "delay": "100ms"}))
    assert detail.job.status is Status.ERROR_FAIL
    assert (detail.job.attempt, detail.job.error and detail.job.error.error_class) == (1, "definition")


def test_a_job_that_is_killed_while_it_waits_is_cancelled_and_never_runs(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    job_id = deployment.client.submit(python_job(f"open({str(tmp_path / 'ran')!r}, 'w')"), delay=3600).id
    deployment.client.kill(job_id)
    detail = deployment.wait(job_id, timeout=15)
    assert detail.job.status is Status.CANCEL
    assert detail.attempts == []
    assert not (tmp_path / "ran").exists()
    with pytest.raises(AlreadyEnded):
        deployment.client.kill(job_id)


SLEEPER = """
import pathlib, time
pathlib.Path({started!r}).touch()
for _ in range(600):
    if pathlib.Path({go!r}).exists():
        break
    time.sleep(0.1)
"""


def sleeper(tmp_path: Path, name: str = "job") -> tuple[str, Path, Path]:
    started, go = tmp_path / f"{name}.started", tmp_path / f"{name}.go"
    return SLEEPER.format(started=str(started), go=str(go)), started, go


def test_a_running_job_that_is_killed_leaves_no_process_and_ends_as_kill(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    program, started, _ = sleeper(tmp_path)
    job_id = deployment.submit(program)
    wait_until(started.exists, 30, "the program runs")
    deployment.client.kill(job_id)
    deployment.client.kill(job_id)  # a second request is no error
    detail = deployment.wait(job_id, timeout=30)
    assert detail.job.status is Status.KILL
    assert [attempt["state"] for attempt in detail.attempts] == ["killed"]
    run = run_name(detail.run_key, 1)
    assert all(submission.exit_code is not None for submission in deployment.runner().find(run))
    stops = deployment.queues.session.children(deployment.queues.layout.stops("default"))  # as zkCli shows it
    assert stops == []


def test_a_drained_worker_lets_go_and_the_next_adopts_the_driver(
    deployment: Deployment, tmp_path: Path
) -> None:
    first = deployment.worker()
    program, started, go = sleeper(tmp_path)
    job_id = deployment.submit(program)
    wait_until(started.exists, 30, "the program runs")
    first.drain()
    detail = deployment.client.detail(job_id)
    assert (detail.job.queue, detail.held_by) == (Queue.RUNNING, None)
    deployment.worker()
    wait_until(lambda: deployment.client.detail(job_id).held_by, 10, "the second worker holds the job")
    go.touch()
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.SUCCESS
    assert len(detail.attempts) == 1
    assert len(deployment.runner().find(run_name(detail.run_key, 1))) == 1


def test_an_intent_whose_worker_died_before_submitting_is_submitted_by_the_next(
    deployment: Deployment, tmp_path: Path
) -> None:
    class DiesBeforeSubmitting(type(deployment.runner())):  # type: ignore[misc] # its class, whatever it is
        def submit(self, _request: object) -> None:
            session.close()  # as a kill would: the lock goes, the intent stays
            raise SystemExit

    runner = DiesBeforeSubmitting(stand_ins(deployment.settings.state_dir), driver_main=Path("unused"))
    first = deployment.worker(runner=runner)
    session = first._set.session  # noqa: SLF001 - the session that dies
    job_id = deployment.submit(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')")
    wait_until(lambda: deployment.client.get(job_id).queue is Queue.RUNNING, 20, "the intent is written")
    deployment.worker()
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.SUCCESS
    assert (detail.job.attempt, (tmp_path / "ran").read_text()) == (1, "x")


def test_an_attempt_that_is_submitted_twice_runs_its_code_once(
    deployment: Deployment, tmp_path: Path
) -> None:
    class SubmitsTwice(type(deployment.runner())):  # type: ignore[misc] # its class, whatever it is
        def submit(self, request: object) -> object:
            import dataclasses  # noqa: PLC0415 - only here

            again = dataclasses.replace(
                request,  # type: ignore[type-var] # a SubmitRequest
                incarnation="f" * 32,
                plan={**request.plan, "incarnation": "f" * 32},  # type: ignore[attr-defined] # likewise
            )
            super().submit(again)
            return super().submit(request)

    base = deployment.runner()
    runner = SubmitsTwice(
        stand_ins(deployment.settings.state_dir),
        driver_main=Path("unused"),
    )
    deployment.worker(runner=runner)
    job_id = deployment.submit(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')\nimport time; time.sleep(1)")
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.SUCCESS
    assert (tmp_path / "ran").read_text() == "x"
    codes = sorted(submission.exit_code or 0 for submission in base.find(run_name(detail.run_key, 1)))
    assert codes == [0, 75]


def test_a_driver_that_was_closed_under_its_hands_ends_by_itself(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    program, started, _ = sleeper(tmp_path)
    job_id = deployment.submit(program)
    wait_until(started.exists, 30, "the program runs")
    detail = deployment.client.detail(job_id)
    attempt = deployment.client.attempt(detail.job)
    assert attempt is not None
    session = deployment.session()
    commit(session, [Set(attempt.path, json.dumps({**attempt.document, "state": "lost"}).encode(), 1)])
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.ERROR_FAIL
    (submission,) = deployment.runner().find(run_name(detail.run_key, 1))
    assert submission.exit_code == 75


def test_a_driver_killed_with_its_shim_is_lost_not_guessed(deployment: Deployment, tmp_path: Path) -> None:
    deployment.worker()
    program, started, _ = sleeper(tmp_path)
    job_id = deployment.submit(program)
    wait_until(started.exists, 30, "the program runs")
    detail = deployment.client.detail(job_id)
    (directory,) = (deployment.settings.state_dir / "runs" / run_name(detail.run_key, 1)).iterdir()
    shim = json.loads((directory / "shim.json").read_text())
    os.kill(shim["pid"], signal.SIGKILL)
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.error is not None
    assert detail.job.error.error_class == "lost"
    assert [attempt["state"] for attempt in detail.attempts] == ["lost"]


def test_a_handler_that_fails_again_and_again_brings_the_job_to_dead_with_the_reason(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.transitions._HANDLER_ERROR_DELAY_SECONDS", 0.05)
    deployment.worker(runner=BuggyRunner(deployment, RuntimeError("a bug in a handler")))
    detail = deployment.wait(deployment.submit("pass"))
    assert (detail.job.queue, detail.job.status) == (Queue.DEAD, Status.DEAD)
    assert detail.job.error is not None
    assert "a bug in a handler" in detail.job.error.message
    (row,) = deployment.client.jobs_in_queue(Queue.DEAD)
    assert "a bug in a handler" in row["reason"]


def test_a_job_that_ends_its_workers_again_and_again_is_brought_to_dead(deployment: Deployment) -> None:
    job_id = deployment.submit("pass")
    queue_set = deployment.queues  # claims as a worker would
    for _ in range(MAX_CLAIMS):
        (token,) = queue_set.tokens(Queue.ACCEPT)
        claim = queue_set.claim(Queue.ACCEPT, "default", token)
        assert claim is not None
        claim.release()  # as when the worker ends: only the lock is removed
    deployment.worker()
    detail = deployment.wait(job_id)
    assert (detail.job.queue, detail.job.status, detail.job.attempt) == (Queue.DEAD, Status.DEAD, 0)
    assert detail.job.error is not None
    assert "claimed 11 times" in detail.job.error.message


def test_a_finished_job_is_removed_when_its_time_is_over_with_its_files(deployment: Deployment) -> None:
    deployment.worker(retention=0.2)
    job_id = deployment.submit("pass")
    run_key = deployment.client.detail(job_id).run_key

    def is_gone() -> bool:
        try:
            deployment.client.get(job_id)
        except ItemNotFound:
            return True
        return False

    wait_until(is_gone, 60, "the job is removed")
    assert not list((deployment.settings.state_dir / "runs").glob(f"{run_key}-*"))


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (None, "its script has no plan"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"version": 1}', "its plan has version 1"),
    ],
)
def test_a_script_without_a_plan_of_this_version_fails_and_is_removed_with_all_of_it(
    deployment: Deployment, plan: bytes | None, words: str
) -> None:
    script = "CREATE TABLE t USING print; INSERT INTO t SELECT 1 AS n"
    made = build_definition({"name": "sql", "script": script, "retry": {"attempts": 3}}, "test")
    job_id = deployment.client.submit(made).id
    node = plan_path(deployment.client.detail(job_id).record_path)
    commit(deployment.queues.session, [Delete(node) if plan is None else Set(node, plan, -1)])
    deployment.worker()
    error = deployment.wait(job_id).job.error
    assert error is not None
    assert (error.error_class, deployment.client.get(job_id).attempt) == ("definition", 1)
    assert words in error.message
    deployment.client.requeue(job_id)
    wait_until(lambda: not deployment.queues.contains(job_id), 60, "the job is removed")
    assert deployment.queues.session.exists(node) is None


def test_a_request_to_stop_that_came_too_late_is_removed(deployment: Deployment) -> None:
    deployment.worker()
    job_id = deployment.submit("pass")
    deployment.wait(job_id)
    stop = deployment.queues.layout.stop("default", job_id)  # as a slow client
    session = deployment.session()
    commit(session, [Create(stop, b'{"run_key": "of an earlier job"}')])
    wait_until(lambda: session.exists(stop) is None, 15, "the stop node is removed")
    assert deployment.client.get(job_id).status is Status.SUCCESS


def test_a_stop_of_an_earlier_job_of_the_same_id_does_not_stop_this_one(deployment: Deployment) -> None:
    job = deployment.client.submit(python_job("pass"), job_id="reused")
    session = deployment.session()
    stop = deployment.queues.layout.stop("default", "reused")  # as a slow client
    commit(session, [Create(stop, b'{"run_key": "of an earlier job"}')])
    deployment.worker()
    assert deployment.wait(job.id).job.status is Status.SUCCESS
    assert session.exists(stop) is None


def test_a_taken_id_is_refused(deployment: Deployment) -> None:
    deployment.client.submit(python_job("pass"), job_id="one", delay=3600)
    with pytest.raises(IdTaken):
        deployment.client.submit(python_job("pass"), job_id="one")


def test_progress_of_a_driver_can_be_read_with_plain_tools(deployment: Deployment, tmp_path: Path) -> None:
    deployment.worker()
    program, started, go = sleeper(tmp_path)
    job_id = deployment.submit(program)
    wait_until(started.exists, 30, "the program runs")
    view = deployment.client.get(job_id)
    path = attempt_path(deployment.queues.layout.record(job_id), view.run_key, 1)  # as zkCli shows it
    session = deployment.session()
    found = session.get(path)
    assert found is not None
    assert json.loads(found[0])["state"] == "started"
    wait_until(lambda: (deployment.client.progress(view) or {}).get("phase"), 15, "the phase is shown")
    assert deployment.client.progress(view) == {
        "phase": "running job.py",
        "application_id": "local-standin",
        "stages": [],
        "sample": {
            "metrics": {"driver": {"heap_live_peak_bytes": 1 << 20}},
            "settings": {"spark.driver.memory": "1g"},
        },
    }
    go.touch()
    deployment.wait(job_id)


def test_the_outcome_is_beside_the_logs_when_zookeeper_never_receives_it(
    deployment: Deployment, tmp_path: Path
) -> None:
    # The driver cannot record its end; the worker reads it from the run directory and records it.
    deployment.worker()
    program = f"""
from spark_runner.driver import attempt_holder
from queues.model.errors import OutcomeUnknown
def away(*_, **__): raise OutcomeUnknown('cut off by the test')
attempt_holder.commit = away
open({str(tmp_path / "ran")!r}, 'a').write('x')
"""
    detail = deployment.wait(deployment.submit(program, timeout={"lease": 5}), timeout=60)
    assert detail.job.status is Status.SUCCESS
    assert detail.attempts[0]["recorded_by"] == "worker"
    assert (tmp_path / "ran").read_text() == "x"
