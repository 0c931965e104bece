"""Limits of jobs: time, submissions, concurrent jobs; and warnings."""

import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from orchestrator.compose import DRIVER_MAIN, build_worker
from orchestrator.handlers.hooks import Hook
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Reason
from spark_runner.protocol.attempt import run_name
from spark_runner.protocol.errors import SubmissionError
from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import Submission, SubmitRequest
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.registry import Runners
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import BuggyRunner, Deployment, poll_often, python_job, rescan_often, stand_ins
from tests.waiting import wait_until

CALM_S = 3.0

WAITS = """
import pathlib, time
pathlib.Path({started!r}).touch()
for _ in range(600):
    if pathlib.Path({go!r}).exists():
        break
    time.sleep(0.1)
"""


def waiting(tmp_path: Path, name: str = "job") -> tuple[str, Path, Path]:
    started, go = tmp_path / f"{name}.started", tmp_path / f"{name}.go"
    return WAITS.format(started=str(started), go=str(go)), started, go


class Scripted(LocalRunner):
    """A local runner with scripted failures."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(stand_ins(deployment.settings.state_dir), driver_main=DRIVER_MAIN)
        self.refusals: list[Exception] = []
        self.silent = False
        self.submitted = 0

    def submit(self, request: SubmitRequest) -> Submission:
        self.submitted += 1
        if self.refusals:
            raise self.refusals.pop()
        return super().submit(request)

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        if self.silent:
            raise ConnectionError("no route to the backend")
        return super().poll_many(runs)


# ---------------------------------------------------------------------- time
def test_a_job_that_runs_for_too_long_is_ended_with_all_its_processes(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    program, started, _ = waiting(tmp_path)
    job_id = deployment.submit(program, timeout={"run": "1s"})
    detail = deployment.wait(job_id)
    assert started.exists()
    assert (detail.job.status, detail.job.queue) == (Status.ERROR_FAIL, Queue.FINISH)
    assert detail.job.error is not None
    assert (detail.job.error.error_class, detail.job.error.type) == ("timeout", "RunTimeout")
    assert [attempt["state"] for attempt in detail.attempts] == ["killed"]
    assert processes_of(run_name(detail.run_key, 1)) == []


def test_the_time_limit_counts_from_the_start_of_the_driver_also_for_who_adopts_it(
    deployment: Deployment, tmp_path: Path
) -> None:
    first = deployment.worker()
    program, started, _ = waiting(tmp_path)
    job_id = deployment.submit(program, timeout={"run": "2s"})
    wait_until(started.exists, 30, "it runs")
    first.drain()
    began = deployment.client.detail(job_id).attempts[0]["started"]
    assert began
    deployment.worker()
    detail = deployment.wait(job_id)
    assert detail.job.error is not None
    assert detail.job.error.type == "RunTimeout"
    assert [attempt["started"] for attempt in detail.attempts] == [began]


def test_a_job_that_has_waited_for_too_long_fails_and_never_runs(
    deployment: Deployment, tmp_path: Path
) -> None:
    job_id = deployment.submit(f"open({str(tmp_path / 'ran')!r}, 'w')", timeout={"queued": "100ms"})
    due = deployment.queues.get(job_id).token.due  # the start of its wait
    clock = deployment.queues.clock
    wait_until(lambda: clock.now_ms() - due > 200, 10, "it has waited")
    deployment.worker()
    detail = deployment.wait(job_id)
    assert (detail.job.status, detail.job.attempt) == (Status.ERROR_FAIL, 0)
    assert detail.job.error is not None
    assert (detail.job.error.error_class, detail.job.error.type) == ("timeout", "QueuedTimeout")
    assert not (tmp_path / "ran").exists()


def test_the_delay_of_a_job_is_no_waiting(deployment: Deployment) -> None:
    deployment.worker()
    definition = python_job("pass", timeout={"queued": "4s"})
    job = deployment.client.submit(definition, delay=4.5)
    assert deployment.wait(job.id).job.status is Status.SUCCESS


def test_a_driver_that_never_takes_its_attempt_is_given_up_and_ended(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.handlers.running._OBEY_SECONDS", 0.5)  # it obeys no request
    idle = LocalRunner(
        SparkSubmits(deployment.settings.state_dir, spark_submit=("/bin/sh", "-c", "exec sleep 600")),
        driver_main=DRIVER_MAIN,
    )
    deployment.worker(runner=idle)
    job_id = deployment.submit("pass", timeout={"submit": "1s"}, retry={"attempts": 1, "submissions": 1})
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.error is not None
    assert (detail.job.error.error_class, detail.job.error.type) == ("submission", "SubmitTimeout")
    assert [attempt["state"] for attempt in detail.attempts] == ["closed"]
    assert processes_of(run_name(detail.run_key, 1)) == []


# ---------------------------------------------------------------------- submissions
def test_submissions_that_fail_for_passing_reasons_count_apart_from_the_attempts(
    deployment: Deployment,
) -> None:
    runner = Scripted(deployment)
    runner.refusals = [SubmissionError("the cluster is full") for _ in range(2)]
    deployment.worker(runner=runner)
    job_id = deployment.submit("pass", retry={"attempts": 1, "delay": "50ms", "submissions": 3})
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.SUCCESS
    assert [attempt["state"] for attempt in detail.attempts] == ["closed", "closed", "succeeded"]
    assert (detail.job.failures, runner.submitted) == (0, 3)


def test_submissions_that_fail_too_often_are_a_failure_of_the_job(deployment: Deployment) -> None:
    runner = Scripted(deployment)
    runner.refusals = [SubmissionError("the cluster is full") for _ in range(5)]
    deployment.worker(runner=runner)
    job_id = deployment.submit("pass", retry={"attempts": 1, "delay": "50ms", "submissions": 2})
    detail = deployment.wait(job_id)
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.error is not None
    assert (detail.job.error.error_class, detail.job.error.message) == ("submission", "the cluster is full")
    assert runner.submitted == 2


# ---------------------------------------------------------------------- warnings
def test_a_backend_that_says_nothing_is_a_warning_until_it_answers(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll_often(monkeypatch)
    runner = Scripted(deployment)
    deployment.worker(runner=runner, warn_after=2)
    program, started, go = waiting(tmp_path)
    job_id = deployment.submit(program)
    wait_until(started.exists, 30, "it runs")
    runner.silent = True
    wait_until(lambda: deployment.client.get(job_id).status is Status.RUNNING_WARN, 20, "the warning")
    view = deployment.client.get(job_id)
    assert view.queue is Queue.RUNNING
    assert view.warning is not None
    assert "no route to the backend" in view.warning
    runner.silent = False
    wait_until(lambda: deployment.client.get(job_id).status is Status.RUNNING, 20, "the end of the warning")
    assert deployment.client.get(job_id).warning is None
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS


def test_a_backend_that_answers_now_and_then_is_no_warning_each_time(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.handlers.supervision._CALM_SECONDS", CALM_S)
    poll_often(monkeypatch)
    warnings: list[float] = []

    class Listener(Hook):
        def after_transition(self, _id: str, _before: JobState, after: JobState, _queue: Queue) -> None:
            if after.status is Status.RUNNING_WARN:
                warnings.append(time.monotonic())

    runner = Scripted(deployment)
    worker = deployment.worker(runner=runner, warn_after=1, hooks=[Listener()])
    program, started, go = waiting(tmp_path)
    job_id = deployment.submit(program, timeout={"lease": 5})  # four polls in that time
    wait_until(started.exists, 30, "it runs")
    held = worker.dispatcher.in_flight.get(job_id)
    assert held is not None
    runner.silent = True
    wait_until(lambda: deployment.client.get(job_id).status is Status.RUNNING_WARN, 20, "the warning")
    for _ in range(3):
        runner.silent = False
        wait_until(
            lambda: deployment.client.get(job_id).status is Status.RUNNING, 20, "the end of the warning"
        )
        runner.silent = True
        wait_until(lambda: held.monitor.backend.unknown > 0, 20, "it is silent again")
    wait_until(lambda: len(warnings) > 1, 30, "the warning that it is silent for longer")
    assert all(later - before >= CALM_S for before, later in pairwise(warnings))
    runner.silent = False
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS


def test_a_driver_without_progress_is_a_warning_that_says_so(deployment: Deployment, tmp_path: Path) -> None:
    deployment.worker()
    program, started, go = waiting(tmp_path)
    job_id = deployment.submit(program, timeout={"stall": "1s"})
    wait_until(started.exists, 30, "it runs")
    wait_until(lambda: deployment.client.get(job_id).status is Status.RUNNING_WARN, 20, "the warning")
    assert "timeout.stall" in (deployment.client.get(job_id).warning or "")
    go.touch()
    detail = deployment.wait(job_id)
    assert (detail.job.status, detail.job.warning) == (Status.SUCCESS, None)


# ---------------------------------------------------------------------- concurrent jobs
def test_a_capped_pool_runs_no_more_than_its_cap_whoever_holds_the_jobs(
    deployment: Deployment, tmp_path: Path
) -> None:
    pools = deployment.queues.pools  # as `config set` does
    deployment.queues.ensure_pool()
    pools.change("default", cap=1)
    first = deployment.worker(slots=4)
    programs = [waiting(tmp_path, f"job{number}") for number in range(2)]
    ids = [deployment.submit(program) for program, _, _ in programs]
    wait_until(lambda: any(started.exists() for _, started, _ in programs), 30, "one runs")
    first.drain()  # its driver still runs, and the job is not held
    running = [job_id for job_id in ids if deployment.client.get(job_id).queue is Queue.RUNNING]
    assert len(running) == 1
    deployment.worker(slots=4)
    deployment.worker(slots=4)
    wait_until(lambda: deployment.client.detail(running[0]).held_by, 20, "it is adopted")
    (other,) = (job_id for job_id in ids if job_id not in running)
    assert deployment.client.get(other).attempt == 0
    for _, _, go in programs:
        go.touch()
    details = [deployment.wait(job_id) for job_id in ids]
    assert [detail.job.status for detail in details] == [Status.SUCCESS, Status.SUCCESS]
    spans = sorted((detail.attempts[0]["started"], detail.attempts[0]["ended"]) for detail in details)
    assert spans[0][1] <= spans[1][0]
    assert deployment.session().children(f"{deployment.settings.root}/slots/default") == []


def test_jobs_of_one_name_run_one_at_a_time_when_their_definition_says_so(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.admission.declined._LOOK_SECONDS", 0.1)
    rescan_often(monkeypatch)  # an end in one worker frees a slot for the other without an event
    deployment.worker(slots=4)
    deployment.worker(slots=4)
    ledger = tmp_path / "ledger"
    program = f"""
import os, time
with open({str(ledger)!r}, 'a') as file: file.write('in\\n')
time.sleep(0.2)
with open({str(ledger)!r}, 'a') as file: file.write('out\\n')
"""
    ids = [deployment.submit(program, name="alone", concurrency=1) for _ in range(4)]
    ids.append(deployment.submit("pass", name="other"))
    assert [deployment.wait(job_id, timeout=90).job.status for job_id in ids] == [Status.SUCCESS] * 5
    assert ledger.read_text().split() == ["in", "out"] * 4
    assert deployment.session().children(f"{deployment.settings.root}/named/alone") == []


def test_a_paused_pool_starts_nothing_and_lets_what_runs_come_to_its_end(
    deployment: Deployment, tmp_path: Path
) -> None:
    first = deployment.worker()
    program, started, go = waiting(tmp_path)
    running = deployment.submit(program)
    wait_until(started.exists, 30, "it runs")
    deployment.queues.pools.change("default", paused=True)  # as `queue pause` does
    first.drain()
    held_back = deployment.submit("pass")
    deployment.worker()
    wait_until(lambda: deployment.client.detail(running).held_by, 20, "the running one is adopted")
    go.touch()
    assert deployment.wait(running).job.status is Status.SUCCESS
    assert deployment.client.get(held_back).queue is Queue.ACCEPT
    deployment.queues.pools.change("default", paused=False)
    assert deployment.wait(held_back).job.status is Status.SUCCESS


# ---------------------------------------------------------------------- hooks and drain
def test_a_hook_sees_each_turn_and_cannot_break_a_job(deployment: Deployment) -> None:
    seen: list[str] = []

    class Listens(Hook):
        def before_submit(self, job_id: str, state: JobState, run: str) -> None:
            seen.append(
                f"before_submit {state.status} {run.startswith(deployment.client.detail(job_id).run_key)}"
            )
            raise RuntimeError("a bug in a hook")

        def after_submit(self, job_id: str, state: JobState, run: str) -> None:
            assert job_id
            seen.append(f"after_submit {state.status} {run.endswith('-1')}")
            raise SystemExit

        def after_outcome(self, job_id: str, state: JobState) -> None:
            assert job_id
            seen.append(f"after_outcome {state.status}")

        def after_transition(self, job_id: str, before: JobState, after: JobState, queue: Queue) -> None:
            assert job_id
            seen.append(f"{before.status} -> {after.status} in {queue}")

    deployment.worker(hooks=[Listens()])
    assert deployment.wait(deployment.submit("pass")).job.status is Status.SUCCESS
    wait_until(lambda: len(seen) == 6, 10, "all turns were seen")
    assert seen == [
        "ACCEPT -> RUNNING in running",
        "before_submit RUNNING True",
        "after_submit RUNNING True",
        "after_outcome SUCCESS",
        "RUNNING -> SUCCESS in success",
        "SUCCESS -> SUCCESS in finish",
    ]


def test_a_worker_with_many_running_jobs_lets_go_of_them_in_one_go(
    deployment: Deployment, tmp_path: Path
) -> None:
    worker = deployment.worker(slots=12)
    go = tmp_path / "go"
    program = WAITS.format(started=str(tmp_path / "started"), go=str(go))
    ids = [deployment.submit(program) for _ in range(12)]
    wait_until(lambda: all(deployment.client.progress(deployment.client.get(i)) for i in ids), 60, "all run")
    before = time.monotonic()
    assert worker.drain()
    assert time.monotonic() - before < 10  # the promised limit, about thirty times the usual duration
    assert [deployment.client.detail(job_id).held_by for job_id in ids] == [None] * 12
    go.touch()
    deployment.worker(slots=12)
    assert [deployment.wait(job_id).job.status for job_id in ids] == [Status.SUCCESS] * 12


def test_a_stop_reaches_a_job_that_waits_in_a_worker(deployment: Deployment, tmp_path: Path) -> None:
    worker = deployment.worker()
    program, started, _ = waiting(tmp_path)
    job_id = deployment.submit(program)
    wait_until(started.exists, 30, "it runs")
    wait_until(worker.dispatcher.timers.parked, 10, "it waits")
    deployment.client.kill(job_id)
    assert deployment.wait(job_id, timeout=20).job.status is Status.KILL


@pytest.mark.parametrize("limit", [1, 3])
def test_errors_of_a_handler_bring_a_job_to_dead_after_the_configured_number(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("orchestrator.worker.transitions._HANDLER_ERROR_DELAY_SECONDS", 0.05)
    errors: list[str] = []

    class Counts(Hook):
        def after_error(self, job_id: str, error: Exception) -> None:
            errors.append(f"{job_id}: {error}")

    runner = BuggyRunner(deployment, RuntimeError("a bug"))
    deployment.worker(runner=runner, hooks=[Counts()], handler_errors=limit)
    job_id = deployment.submit("pass")
    detail = deployment.wait(job_id)
    assert (detail.job.queue, errors) == (Queue.DEAD, [f"{job_id}: a bug"] * limit)


def test_a_job_whose_driver_does_not_fit_is_left_to_others_until_the_guard_is_taken_away(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.admission.declined._LOOK_SECONDS", 0.1)
    rescan_often(monkeypatch)
    settings = deployment.settings.model_copy(update={"memory_pressure_limit": 0.0, "memory_guard": True})
    session = deployment.session()
    worker = build_worker(session, settings, runners=Runners.of(deployment.runner()))
    worker.start()
    try:
        small = deployment.submit("pass")
        large = deployment.submit("pass", spark={"driver": {"memory": "900000g"}})
        assert deployment.wait(small).job.status is Status.SUCCESS
        wait_until(lambda: not worker._context.admission.declined.accepts(large), 20, "it was looked at")  # noqa: SLF001 - no other trace
        wait_until(lambda: deployment.client.detail(large).held_by is None, 20, "it is let go")

        def waits_for_memory() -> bool:  # rather than for the one slot, which the small one frees
            waiting = deployment.client.detail(large).waiting
            return (
                waiting is not None
                and waiting.reason == Reason.MEMORY
                and "its driver may use 990000.0 GiB of memory, and " in waiting.message
            )

        wait_until(waits_for_memory, 20, "it says what it waits for")
        assert (deployment.client.get(large).queue, deployment.client.get(large).attempt) == (Queue.ACCEPT, 0)
        assert deployment.queues.get(large).claims == 0  # else it would count as poison
        deployment.client.config.change(memory_guard=False)
        assert deployment.wait(large).job.status is Status.SUCCESS
    finally:
        worker.drain()
