"""Jobs under faults that a review found: stale stops, hung drivers, failures before the start."""

import dataclasses
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.claims.claimer import Claimer
from queues.consumer.consumer import Consumer
from queues.model.errors import QueueError
from queues.model.operations import Create, Delete
from queues.session import Session
from queues.store.commit import commit
from spark_runner.runners.base import Submission, SubmitRequest
from spark_runner.runners.local import LocalRunner
from tests.jobs_support import BuggyRunner, Deployment, python_job, rescan_often, stand_ins
from tests.waiting import wait_until

STALE = b'{"run_key": "of an earlier job"}'


def stop_path(deployment: Deployment, job_id: str) -> str:
    return f"{deployment.settings.root}/stops/default/{job_id}"


def scans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the scans of all consumers from now on."""
    counted, scan = [0], Consumer._scan  # noqa: SLF001 - the condition of the test

    def counting(self: Consumer) -> float:
        counted[0] += 1
        return scan(self)

    monkeypatch.setattr(Consumer, "_scan", counting)
    return lambda: counted[0]


def test_a_finished_job_is_kept_when_two_workers_see_a_late_stop(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = deployment.worker()
    job_id = deployment.submit("pass")
    deployment.wait(job_id)
    first.drain()
    session, stop = deployment.session(), stop_path(deployment, job_id)
    commit(session, [Create(stop, STALE)])
    claim = Claimer.claim

    def between(self: Claimer, candidates: Sequence[Candidate]) -> list[Claim | QueueError]:
        if session.exists(stop) is not None:
            commit(session, [Delete(stop)])  # another worker claims it, removes the stop and releases it
        return claim(self, candidates)

    monkeypatch.setattr(Claimer, "claim", between)
    rescan_often(monkeypatch)
    count = scans(monkeypatch)
    deployment.worker()
    wait_until(lambda: count() >= 3, 30, "the stop is gone and more scans have passed")
    assert deployment.client.get(job_id).status is Status.SUCCESS


def test_late_stops_cost_no_finished_job(deployment: Deployment) -> None:
    queue_set = deployment.queues  # puts finished jobs without running them
    deployment.worker()
    deployment.worker()
    state = JobState.enqueued("x").evolve(status=Status.SUCCESS).to_payload()
    ids = [f"j{number}" for number in range(100)]
    for job_id in ids:
        queue_set.put(Queue.FINISH, job_id, state, delay_ms=3_600_000)
    session = deployment.session()
    for job_id in ids:
        commit(session, [Create(stop_path(deployment, job_id), STALE)])
    wait_until(
        lambda: not session.children(stop_path(deployment, "x").rpartition("/")[0]), 60, "no stop is left"
    )
    wait_until(
        lambda: not session.children(f"{deployment.settings.root}/locks/default"), 60, "no lock is left"
    )
    assert sorted(view.id for view in deployment.client.jobs((Queue.FINISH,))) == sorted(ids)


def test_a_stop_of_an_earlier_job_does_not_start_this_one_before_it_is_due(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"open({str(tmp_path / 'ran')!r}, 'w')"
    deployment.client.submit(python_job(program), job_id="reused", delay=3600)
    session, stop = deployment.session(), stop_path(deployment, "reused")
    commit(session, [Create(stop, STALE)])
    rescan_often(monkeypatch)
    count = scans(monkeypatch)
    deployment.worker()
    wait_until(lambda: session.exists(stop) is None, 15, "the stale stop is removed")
    seen = count()
    wait_until(lambda: count() >= seen + 2, 30, "two more scans have passed")
    assert deployment.client.get("reused").status is Status.ACCEPT
    assert not (tmp_path / "ran").exists()


def test_a_kill_counts_though_a_stop_of_an_earlier_job_is_there(deployment: Deployment) -> None:
    deployment.client.submit(python_job("pass"), job_id="reused", delay=3600)
    commit(deployment.session(), [Create(stop_path(deployment, "reused"), STALE)])
    deployment.client.kill("reused")
    deployment.worker()
    assert deployment.wait("reused", timeout=15).job.status is Status.CANCEL


def test_an_error_full_of_control_characters_is_a_failure_like_any_other(deployment: Deployment) -> None:
    deployment.worker()
    detail = deployment.wait(deployment.submit(r"raise ValueError('\x01' * 9000 + '\udcff')"), timeout=30)
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.error is not None
    assert detail.job.error.type == "ValueError"


def test_a_record_with_a_foreign_child_is_tried_ever_more_slowly_and_ends_in_dead(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.transitions._HANDLER_ERROR_DELAY_SECONDS", 0.05)
    first = deployment.worker(retention=2)
    job_id = deployment.submit("pass")
    deployment.wait(job_id)
    first.drain()
    commit(
        deployment.session(),
        [Create(f"{deployment.client.detail(job_id).record_path}/note", b"an operator's")],
    )
    deployment.worker(retention=2)
    wait_until(lambda: deployment.client.get(job_id).queue is Queue.DEAD, 30, "the job is in dead")
    error = deployment.client.get(job_id).error
    assert error is not None
    assert "NotEmpty" in error.message


def test_a_hung_driver_within_reach_is_ended_before_the_next_attempt_runs(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.handlers.liveness._LEASE_MARGIN_SECONDS", -4.0)  # of a lease of 5 s
    deployment.worker()
    out = tmp_path / "out"
    program = f"""
import os, time
with open({str(out)!r}, 'a') as file: file.write(f'{{os.getpid()}}\\n')
for _ in range(600):
    if len(open({str(out)!r}).readlines()) == 2: break
    time.sleep(0.1)
"""
    job_id = deployment.submit(program, retry={"attempts": 2, "delay": "0s"}, timeout={"lease": 5})
    wait_until(lambda: out.exists() and out.read_text(), 30, "the program runs")
    hung = psutil.Process(int(out.read_text().split()[0]))
    os.kill(hung.pid, signal.SIGSTOP)  # its session expires, and it would wake up beside its successor
    detail = deployment.wait(job_id, timeout=60)
    assert detail.job.status is Status.SUCCESS
    assert [attempt["state"] for attempt in detail.attempts] == ["lost", "succeeded"]
    assert not hung.is_running()


class Altered(LocalRunner):
    """A runner whose requests pass through a function first."""

    def __init__(self, deployment: Deployment, alter: Callable[[SubmitRequest], SubmitRequest]) -> None:
        super().__init__(stand_ins(deployment.settings.state_dir), driver_main=Path("unused"))
        self._alter = alter

    def submit(self, request: SubmitRequest) -> Submission:
        return super().submit(self._alter(request))


def test_a_driver_that_could_not_reach_zookeeper_costs_no_attempt(
    deployment: Deployment, tmp_path: Path
) -> None:
    seen: list[SubmitRequest] = []

    def cut_off_once(request: SubmitRequest) -> SubmitRequest:
        seen.append(request)
        nowhere = {"hosts": "127.0.0.1:1", "session_timeout": 4.0, "connect_timeout": 1.0}
        return (
            dataclasses.replace(request, plan={**request.plan, "zookeeper": nowhere})
            if len(seen) == 1
            else request
        )

    deployment.worker(runner=Altered(deployment, cut_off_once))
    detail = deployment.wait(
        deployment.submit(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')"), timeout=60
    )
    assert detail.job.status is Status.SUCCESS
    assert (detail.job.attempt, len(seen), (tmp_path / "ran").read_text()) == (1, 2, "x")


def test_a_handler_error_that_cannot_be_encoded_does_not_keep_the_job_for_ever(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.transitions._HANDLER_ERROR_DELAY_SECONDS", 0.05)
    deployment.worker(runner=BuggyRunner(deployment, RuntimeError("no such file: /data/\udcff")))
    assert deployment.wait(deployment.submit("pass"), timeout=30).job.queue is Queue.DEAD


def test_a_worker_keeps_no_watch_for_jobs_that_it_has_let_go(deployment: Deployment) -> None:
    worker = deployment.worker(slots=2)
    ids = [deployment.submit("pass") for _ in range(4)]
    for job_id in ids:
        deployment.wait(job_id)
    session: Session = worker._set.session  # noqa: SLF001 - its watches are counted
    client = session._client  # noqa: SLF001 - likewise
    watched = {**client._data_watchers, **client._child_watchers}  # noqa: SLF001 - likewise
    left = [path for path, found in watched.items() if found and any(job_id in path for job_id in ids)]
    assert left == []


def test_a_job_that_ends_in_the_moment_of_ctrl_c_is_shown_as_it_ended(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace  # noqa: PLC0415 - only here

    from orchestrator.cli.live import display  # noqa: PLC0415 - likewise
    from orchestrator.cli.run import _follow  # noqa: PLC0415 - likewise

    deployment.worker()
    job_id = deployment.submit("pass")
    kill = deployment.client.kill

    def after_the_end(stopped: str) -> None:
        deployment.client.wait(stopped, timeout=30)
        kill(stopped)

    monkeypatch.setattr(deployment.client, "kill", after_the_end)
    screen = display(quiet=True)
    interrupt: Any = SimpleNamespace(is_set=lambda: True)
    _follow(deployment.client, job_id, screen, interrupt, check=lambda: None)
    assert deployment.client.get(job_id).status is Status.SUCCESS


def test_a_worker_finds_and_repairs_damage_while_it_works(deployment: Deployment) -> None:
    job_id = deployment.submit("pass")
    session, folder = deployment.session(), f"{deployment.settings.root}/queues/{Queue.ACCEPT}/default"
    tokens = session.children(folder) or []
    commit(session, [Delete(f"{folder}/{token}") for token in tokens])
    assert len(tokens) == 1
    deployment.worker(scrub_interval=0.5)
    assert deployment.wait(job_id).job.status is Status.SUCCESS


def test_a_program_that_forks_and_lets_both_go_on_has_the_outcome_of_the_parent(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker()
    program = f"""
import os, pathlib
child = os.fork()
if child:
    os.waitpid(child, 0)
    pathlib.Path({str(tmp_path / "parent")!r}).touch()
else:
    raise RuntimeError("of the child alone")
"""
    detail = deployment.wait(deployment.submit(program))
    assert detail.job.status is Status.SUCCESS, detail.job.error
    assert (tmp_path / "parent").exists()


def test_a_child_of_a_program_ends_even_if_it_was_forked_while_another_thread_imported(
    deployment: Deployment,
) -> None:
    deployment.worker()
    module = "orchestrator.logs.record.redaction"  # a driver loads it for its first report, in a thread
    program = f"""
import importlib, os, sys, threading
from importlib.machinery import SourceFileLoader
importing, forked, load = threading.Event(), threading.Event(), SourceFileLoader.exec_module
def load_slowly(loader, module):
    if module.__name__ == {module!r}:
        importing.set()
        forked.wait()
    load(loader, module)
SourceFileLoader.exec_module = load_slowly
sys.modules.pop({module!r}, None)
threading.Thread(target=importlib.import_module, args=({module!r},), daemon=True).start()
importing.wait()
endings = []
for ending in (SystemExit("the end"), SystemExit(3), SystemExit(), RuntimeError("of the child alone")):
    child = os.fork()
    if not child:
        raise ending
    endings.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
forked.set()
assert endings == [1, 3, 0, 1], endings
"""
    detail = deployment.wait(deployment.submit(program))
    assert detail.job.status is Status.SUCCESS, detail.job.error
