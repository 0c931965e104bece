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
from tests.jobs_support import BuggyRunner, Office, python_job, rescan_often, stand_ins
from tests.waiting import wait_until

STALE = b'{"run_key": "of an earlier job"}'


def stop_path(office: Office, job_id: str) -> str:
    return f"{office.settings.root}/stops/default/{job_id}"


def scans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the scans of all consumers from now on."""
    counted, scan = [0], Consumer._scan  # noqa: SLF001 - the condition of the test

    def counting(self: Consumer) -> float:
        counted[0] += 1
        return scan(self)

    monkeypatch.setattr(Consumer, "_scan", counting)
    return lambda: counted[0]


def test_a_finished_job_is_kept_when_two_workers_see_a_late_stop(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = office.worker()
    job_id = office.submit("pass")
    office.wait(job_id)
    first.drain()
    session, stop = office.session(), stop_path(office, job_id)
    commit(session, [Create(stop, STALE)])
    claim = Claimer.claim

    def between(self: Claimer, candidates: Sequence[Candidate]) -> list[Claim | QueueError]:
        if session.exists(stop) is not None:
            commit(session, [Delete(stop)])  # another worker claims it, removes the stop and releases it
        return claim(self, candidates)

    monkeypatch.setattr(Claimer, "claim", between)
    rescan_often(monkeypatch)
    count = scans(monkeypatch)
    office.worker()
    wait_until(lambda: count() >= 3, 30, "the stop is gone and more scans have passed")
    assert office.client.get(job_id).status is Status.SUCCESS


def test_late_stops_cost_no_finished_job(office: Office) -> None:
    queue_set = office.queues  # puts finished jobs without running them
    office.worker()
    office.worker()
    state = JobState.enqueued("x").evolve(status=Status.SUCCESS).model_dump(mode="json")
    ids = [f"j{number}" for number in range(100)]
    for job_id in ids:
        queue_set.put(Queue.FINISH, job_id, state, delay_ms=3_600_000)
    session = office.session()
    for job_id in ids:
        commit(session, [Create(stop_path(office, job_id), STALE)])
    wait_until(lambda: not session.children(stop_path(office, "x").rpartition("/")[0]), 60, "no stop is left")
    wait_until(lambda: not session.children(f"{office.settings.root}/locks/default"), 60, "no lock is left")
    assert sorted(view.id for view in office.client.jobs((Queue.FINISH,))) == sorted(ids)


def test_a_stop_of_an_earlier_job_does_not_start_this_one_before_it_is_due(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = f"open({str(tmp_path / 'ran')!r}, 'w')"
    office.client.submit(python_job(program), job_id="reused", delay=3600)
    session, stop = office.session(), stop_path(office, "reused")
    commit(session, [Create(stop, STALE)])
    rescan_often(monkeypatch)
    count = scans(monkeypatch)
    office.worker()
    wait_until(lambda: session.exists(stop) is None, 15, "the stale stop is removed")
    seen = count()
    wait_until(lambda: count() >= seen + 2, 30, "two more scans have passed")
    assert office.client.get("reused").status is Status.ACCEPT
    assert not (tmp_path / "ran").exists()


def test_a_kill_counts_though_a_stop_of_an_earlier_job_is_there(office: Office) -> None:
    office.client.submit(python_job("pass"), job_id="reused", delay=3600)
    commit(office.session(), [Create(stop_path(office, "reused"), STALE)])
    office.client.kill("reused")
    office.worker()
    assert office.wait("reused", timeout=15).job.status is Status.CANCEL


def test_an_error_full_of_control_characters_is_a_failure_like_any_other(office: Office) -> None:
    office.worker()
    detail = office.wait(office.submit(r"raise ValueError('\x01' * 9000 + '\udcff')"), timeout=30)
    assert detail.job.status is Status.ERROR_FAIL
    assert detail.job.error is not None
    assert detail.job.error.type == "ValueError"


def test_a_record_with_a_foreign_child_is_tried_ever_more_slowly_and_ends_in_dead(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.transitions._HANDLER_ERROR_DELAY_SECONDS", 0.05)
    first = office.worker(retention=2)
    job_id = office.submit("pass")
    office.wait(job_id)
    first.drain()
    commit(office.session(), [Create(f"{office.client.detail(job_id).record_path}/note", b"an operator's")])
    office.worker(retention=2)
    wait_until(lambda: office.client.get(job_id).queue is Queue.DEAD, 30, "the job is in dead")
    error = office.client.get(job_id).error
    assert error is not None
    assert "NotEmpty" in error.message


def test_a_hung_driver_within_reach_is_ended_before_the_next_attempt_runs(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.handlers.liveness._LEASE_MARGIN_SECONDS", -4.0)  # of a lease of 5 s
    office.worker()
    out = tmp_path / "out"
    program = f"""
import os, time
with open({str(out)!r}, 'a') as file: file.write(f'{{os.getpid()}}\\n')
for _ in range(600):
    if len(open({str(out)!r}).readlines()) == 2: break
    time.sleep(0.1)
"""
    job_id = office.submit(program, retry={"attempts": 2, "delay": "0s"}, timeout={"lease": 5})
    wait_until(lambda: out.exists() and out.read_text(), 30, "the program runs")
    hung = psutil.Process(int(out.read_text().split()[0]))
    os.kill(hung.pid, signal.SIGSTOP)  # its session expires, and it would wake up beside its successor
    detail = office.wait(job_id, timeout=60)
    assert detail.job.status is Status.SUCCESS
    assert [attempt["state"] for attempt in detail.attempts] == ["lost", "succeeded"]
    assert not hung.is_running()


class Altered(LocalRunner):
    """A runner whose requests pass through a function first."""

    def __init__(self, office: Office, alter: Callable[[SubmitRequest], SubmitRequest]) -> None:
        super().__init__(stand_ins(office.settings.state_dir), driver_main=Path("unused"))
        self._alter = alter

    def submit(self, request: SubmitRequest) -> Submission:
        return super().submit(self._alter(request))


def test_a_driver_that_could_not_reach_zookeeper_costs_no_attempt(office: Office, tmp_path: Path) -> None:
    seen: list[SubmitRequest] = []

    def cut_off_once(request: SubmitRequest) -> SubmitRequest:
        seen.append(request)
        nowhere = {"hosts": "127.0.0.1:1", "session_timeout": 4.0, "connect_timeout": 1.0}
        return (
            dataclasses.replace(request, plan={**request.plan, "zookeeper": nowhere})
            if len(seen) == 1
            else request
        )

    office.worker(runner=Altered(office, cut_off_once))
    detail = office.wait(office.submit(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')"), timeout=60)
    assert detail.job.status is Status.SUCCESS
    assert (detail.job.attempt, len(seen), (tmp_path / "ran").read_text()) == (1, 2, "x")


def test_a_handler_error_that_cannot_be_encoded_does_not_keep_the_job_for_ever(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.worker.transitions._HANDLER_ERROR_DELAY_SECONDS", 0.05)
    office.worker(runner=BuggyRunner(office, RuntimeError("no such file: /data/\udcff")))
    assert office.wait(office.submit("pass"), timeout=30).job.queue is Queue.DEAD


def test_a_worker_keeps_no_watch_for_jobs_that_it_has_let_go(office: Office) -> None:
    worker = office.worker(slots=2)
    ids = [office.submit("pass") for _ in range(4)]
    for job_id in ids:
        office.wait(job_id)
    session: Session = worker._set.session  # noqa: SLF001 - its watches are counted
    client = session._client  # noqa: SLF001 - likewise
    watched = {**client._data_watchers, **client._child_watchers}  # noqa: SLF001 - likewise
    left = [path for path, found in watched.items() if found and any(job_id in path for job_id in ids)]
    assert left == []


def test_a_job_that_ends_in_the_moment_of_ctrl_c_is_shown_as_it_ended(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    from types import SimpleNamespace  # noqa: PLC0415 - only here

    from orchestrator.cli.run import _follow  # noqa: PLC0415 - likewise

    office.worker()
    job_id = office.submit("pass")
    kill = office.client.kill

    def after_the_end(stopped: str) -> None:
        office.client.wait(stopped, timeout=30)
        kill(stopped)

    monkeypatch.setattr(office.client, "kill", after_the_end)
    screen: Any = SimpleNamespace(show=lambda *_: None, say=lambda _words: None)
    interrupt: Any = SimpleNamespace(is_set=lambda: True)
    assert _follow(office.client, job_id, screen, interrupt).status is Status.SUCCESS


def test_a_worker_finds_and_repairs_damage_while_it_works(office: Office) -> None:
    job_id = office.submit("pass")
    session, folder = office.session(), f"{office.settings.root}/queues/{Queue.ACCEPT}/default"
    tokens = session.children(folder) or []
    commit(session, [Delete(f"{folder}/{token}") for token in tokens])
    assert len(tokens) == 1
    office.worker(scrub_interval=0.5)
    assert office.wait(job_id).job.status is Status.SUCCESS


def test_a_program_that_forks_and_lets_both_go_on_has_the_outcome_of_the_parent(
    office: Office, tmp_path: Path
) -> None:
    office.worker()
    program = f"""
import os, pathlib
child = os.fork()
if child:
    os.waitpid(child, 0)
    pathlib.Path({str(tmp_path / "parent")!r}).touch()
else:
    raise RuntimeError("of the child alone")
"""
    detail = office.wait(office.submit(program))
    assert detail.job.status is Status.SUCCESS, detail.job.error
    assert (tmp_path / "parent").exists()
