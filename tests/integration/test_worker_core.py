"""Faults that a review of the core found: each test failed before the fix."""

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest

from orchestrator.admission.declined import Declined
from orchestrator.compose import DRIVER_MAIN, build_worker
from orchestrator.config.settings import Settings
from orchestrator.handlers.hooks import Hook
from orchestrator.model.job import JobError, JobState
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from orchestrator.worker.announcement import Announcement, Load
from orchestrator.worker.dispatcher import JobDispatcher
from orchestrator.worker.worker import Worker
from queues import EmbeddedZooKeeper, ServerConfig
from queues.claims.claim import Transition
from queues.claims.lock_sessions import LockSessions
from queues.claims.transitions import run_transitions
from queues.consumer.backlog import Backlog
from queues.consumer.pool_views import PoolViews
from queues.model.errors import QueueError
from queues.model.events import EventKind
from queues.model.names import Token
from queues.model.operations import Create, Delete
from queues.session import Session
from queues.store.commit import commit
from queues.store.watched_folder import WatchedFolder
from spark_runner.runners.base import Submission, SubmissionPlace, SubmitRequest
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.registry import Runners
from tests.jobs_support import Deployment, rescan_often, sleeps, stand_ins, waits_for
from tests.queues_support import expire
from tests.waiting import wait_until


def set_default(monkeypatch: pytest.MonkeyPatch, kind: type, name: str, value: float) -> None:
    """Change the default of a keyword of the constructor."""
    defaults = kind.__init__.__kwdefaults__  # type: ignore[misc] # of that very class
    assert defaults is not None
    monkeypatch.setitem(defaults, name, value)


class Scripted(LocalRunner):
    """A local runner that calls a function of the test before it submits."""

    def __init__(self, deployment: Deployment, before_submit: Callable[[], None]) -> None:
        super().__init__(stand_ins(deployment.settings.state_dir), driver_main=DRIVER_MAIN)
        self._before_submit = before_submit

    def submit(self, request: SubmitRequest) -> Submission:
        self._before_submit()
        return super().submit(request)


class OnHost(LocalRunner):
    """A local runner with the host name of the test."""

    def __init__(self, deployment: Deployment, host: str) -> None:
        super().__init__(stand_ins(deployment.settings.state_dir / host), driver_main=DRIVER_MAIN)
        self._host = host

    def place(self) -> SubmissionPlace:
        return SubmissionPlace(self.backend, self._host, "boot")

    def reaches(self, place: SubmissionPlace) -> bool:
        return place.host == self._host


def test_an_item_that_becomes_free_while_others_are_restored_is_not_lost() -> None:
    backlog = Backlog(
        "accept", "default", WatchedFolder(cast("Session", None), "/q", lambda: None), lambda *_: None
    )
    names = [Token(due=1, seq=number, id=f"j{number}").name for number in range(2)]
    for name in names:
        backlog.defer(name)
    asked: list[str] = []

    def is_free(item_id: str) -> bool:  # j1 becomes so in between
        asked.append(item_id)
        return item_id == "j0" or asked.count("j1") > 1

    backlog.restore_deferred(is_free)
    assert sorted(backlog.find({"j0", "j1"})) == sorted(names)


def test_a_hook_that_is_cancelled_does_not_end_the_thread_that_commits(deployment: Deployment) -> None:
    class Cancelled(Hook):
        def after_transition(self, *_: object) -> None:
            raise asyncio.CancelledError  # no Exception

    deployment.worker(hooks=[Cancelled()])
    assert deployment.wait(deployment.submit("pass"), timeout=30).job.status is Status.SUCCESS


def test_a_worker_that_drains_starts_no_driver_for_what_it_has_not_begun(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_default(monkeypatch, JobDispatcher, "threads", 1)
    submitted: list[str] = []
    at_it, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        submitted.append("one")
        at_it.set()
        assert go_on.wait(30)

    worker = deployment.worker(slots=2, runner=Scripted(deployment, wait))
    ids = [deployment.submit("pass") for _ in range(2)]
    assert at_it.wait(30)
    wait_until(
        lambda: worker.dispatcher.in_flight.count(Queue.ACCEPT, Queue.RUNNING) == 2, 20, "both are in hand"
    )
    draining = threading.Thread(target=worker.drain)
    draining.start()
    assert worker._context.draining.wait(10)  # noqa: SLF001 - the begin of its drain
    go_on.set()
    draining.join()
    assert len(submitted) == 1
    deployment.worker(slots=2)
    assert [deployment.wait(job_id).job.status for job_id in ids] == [Status.SUCCESS] * 2


def test_errors_of_a_handler_are_counted_however_many_there_were(deployment: Deployment) -> None:
    queue_set = deployment.queues  # a job in running whose attempt is missing
    state = JobState.enqueued("x").evolve(status=Status.RUNNING, attempt=1, handler_errors=2_000)
    queue_set.put(Queue.RUNNING, "broken", state.to_payload())
    deployment.worker()
    wait_until(lambda: queue_set.get("broken").payload["handler_errors"] > 2_000, 20, "it is counted")


def test_a_running_job_does_not_become_a_dead_letter_although_it_is_in_another_queue(
    deployment: Deployment,
) -> None:
    queue_set = deployment.queues  # a driver may run, and no worker watches it in dead
    state = JobState.enqueued("x").evolve(status=Status.RUNNING, attempt=1, handler_errors=99)
    queue_set.put(Queue.FAIL, "astray", state.to_payload())
    deployment.worker(handler_errors=2)
    wait_until(lambda: queue_set.get("astray").payload["handler_errors"] > 99, 20, "it is counted")
    assert queue_set.get("astray").queue == Queue.FAIL


def test_the_failure_of_a_job_stays_on_record_in_dead(deployment: Deployment) -> None:
    queue_set = deployment.queues  # a job whose definition is missing
    error = JobError(error_class="lost", message="no life")
    state = JobState.enqueued("x").evolve(error=error)
    queue_set.put(Queue.ACCEPT, "unlucky", state.to_payload())
    deployment.worker(handler_errors=1)
    wait_until(lambda: deployment.client.get("unlucky").queue is Queue.DEAD, 20, "it is a dead letter")
    view = deployment.client.get("unlucky")
    assert view.error is not None
    assert "definition" in view.error.message
    assert view.buried_error == error


def idle() -> Load:
    return Load(used=0, held=0, running=(), adopted=0)


def test_the_removed_node_of_a_worker_is_created_again(deployment: Deployment) -> None:
    session, nodes = deployment.session(), Nodes(deployment.settings.root)
    announcement = Announcement(
        session,
        nodes,
        "w",
        slots=1,
        pools=None,
        places=[],
        load=idle,
        refresh_seconds=0.1,
    )
    announcement.start()
    try:
        commit(session, [Delete(nodes.worker("w"))])
        wait_until(lambda: session.exists(nodes.worker("w")), 20, "it is there again")
    finally:
        announcement.stop()


def test_a_large_payload_that_is_no_jobs_comes_to_dead(deployment: Deployment) -> None:
    queue_set = deployment.queues  # the library of queues accepts any payload
    queue_set.put(Queue.ACCEPT, "poison", {"junk": "x" * 65_000})
    deployment.worker()
    wait_until(lambda: queue_set.get("poison").queue == Queue.DEAD, 20, "it is in dead")
    assert queue_set.get("poison").payload["junk"] == "x" * 65_000
    assert "validation" in str(queue_set.get("poison").error)


def alone(deployment: Deployment, tmp_path: Path, name: str) -> tuple[str, Path]:
    """A job that runs one at a time by name, and the file that ends it."""
    go = tmp_path / name
    return deployment.submit(waits_for(go), name="alone", concurrency=1), go


def test_a_stop_reaches_a_job_that_waits_for_others_of_its_name(
    deployment: Deployment, tmp_path: Path
) -> None:
    worker = deployment.worker()
    running, go = alone(deployment, tmp_path, "first")
    wait_until(lambda: deployment.client.get(running).attempt, 30, "one runs")
    waiting, _ = alone(deployment, tmp_path, "second")
    declined = worker._context.admission.declined  # noqa: SLF001 - no other trace
    wait_until(lambda: not declined.accepts(waiting), 30, "the other one is left for now")
    deployment.client.kill(waiting)
    assert deployment.wait(waiting, timeout=20).job.status is Status.CANCEL
    go.touch()
    assert deployment.wait(running).job.status is Status.SUCCESS


def test_a_running_job_that_was_declined_before_it_ran_elsewhere_is_adopted(
    deployment: Deployment, tmp_path: Path
) -> None:
    first = deployment.worker()
    job_id, go = alone(deployment, tmp_path, "go")
    wait_until(lambda: deployment.client.progress(deployment.client.get(job_id)), 30, "it runs")
    second = deployment.worker()
    second._context.admission.declined.add_named(job_id, "alone", 1)  # noqa: SLF001 - as while another one ran
    first.drain()
    wait_until(lambda: deployment.client.detail(job_id).held_by, 20, "it is adopted")
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS


def test_jobs_that_do_not_fit_here_are_not_claimed_again_and_again(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescan_often(monkeypatch)
    rescans, rescan = [0], PoolViews.rescan

    def counting(self: PoolViews) -> None:
        rescans[0] += 1
        rescan(self)

    monkeypatch.setattr(PoolViews, "rescan", counting)
    settings = deployment.settings.model_copy(update={"memory_pressure_limit": 0.0, "memory_guard": True})
    worker = build_worker(deployment.session(), settings, runners=Runners.of(deployment.runner()))
    claimed: list[str] = []
    worker._set.listen(lambda event: claimed.append(event.id) if event.kind is EventKind.CLAIM else None)  # noqa: SLF001 - the counter
    ids = [deployment.submit("pass", spark={"driver": {"memory": "900000g"}}) for _ in range(5)]
    worker.start()
    try:
        wait_until(lambda: set(claimed) == set(ids), 20, "each was looked at")
        before = rescans[0]
        wait_until(lambda: rescans[0] > before + 5, 20, "the queue was looked at again")
        assert len(claimed) == 5
    finally:
        worker.drain()


def test_declined_jobs_that_are_never_offered_again_are_dropped() -> None:
    now = [0.0]
    declined = Declined(lambda _name, _limit: 0, clock=lambda: now[0])
    for number in range(1_000):
        declined.add(f"a{number}", "small", lambda: 0)
        declined.add_named(f"b{number}", f"n{number}", 1)
        now[0] += 60
    assert len(declined) < 100


def test_jobs_of_one_name_wait_each_for_its_own_limit() -> None:
    now, running = [0.0], [1]
    declined = Declined(lambda _name, limit: max(0, limit - running[0]), clock=lambda: now[0])
    declined.add_named("own", "tick", 5)
    declined.add_named("of-a-backfill", "tick", 1)
    now[0] = 2
    assert declined.accepts("own"), "one runs, and five may"
    assert not declined.accepts("of-a-backfill")
    running[0] = 0
    declined.ended("tick")
    assert declined.accepts("of-a-backfill")


def test_a_name_is_asked_for_capacity_after_its_slot_was_freed(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, left = deployment.session(), list[list[str] | None]()
    ended = Declined.ended

    def looked_at(self: Declined, name: str) -> None:
        left.append(session.children(f"{deployment.settings.root}/named/{name}"))
        ended(self, name)

    monkeypatch.setattr(Declined, "ended", looked_at)
    deployment.worker()
    assert (
        deployment.wait(deployment.submit("pass", name="alone", concurrency=1)).job.status is Status.SUCCESS
    )
    assert left == [[]]


def test_a_killed_job_that_waits_for_its_callback_has_no_slot_among_the_running_ones(
    deployment: Deployment, tmp_path: Path
) -> None:
    pools = deployment.queues.pools  # as `config set` does
    deployment.queues.ensure_pool()
    pools.change("default", cap=1)
    deployment.worker()
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    program, started = (
        f"import pathlib, time\npathlib.Path({str(tmp_path / 'on')!r}).touch()\ntime.sleep(60)",
        tmp_path / "on",
    )
    url = f"http://127.0.0.1:{port}/"
    job_id = deployment.submit(program, callback={"url": url, "attempts": 100})
    wait_until(started.exists, 30, "it runs")
    deployment.client.kill(job_id)
    wait_until(
        lambda: deployment.client.get(job_id).callback.attempts, 30, "a try of its callback has failed"
    )
    assert deployment.client.get(job_id).status is Status.KILL
    assert deployment.wait(deployment.submit("pass"), timeout=20).job.status is Status.SUCCESS


def test_drivers_on_another_host_take_no_slots_of_who_watches_them(
    deployment: Deployment, tmp_path: Path
) -> None:
    first = deployment.worker(slots=1, runner=OnHost(deployment, "one"))
    go = tmp_path / "go"
    program = waits_for(go)
    there = deployment.submit(program)
    wait_until(lambda: deployment.client.progress(deployment.client.get(there)), 30, "it runs")
    first.drain()  # its driver still runs
    deployment.worker(slots=1, runner=OnHost(deployment, "two"))
    wait_until(lambda: deployment.client.detail(there).held_by, 20, "it is watched from another host")
    assert deployment.wait(deployment.submit("pass"), timeout=20).job.status is Status.SUCCESS
    go.touch()
    assert deployment.wait(there).job.status is Status.SUCCESS


def test_a_time_limit_is_obeyed_though_a_stop_of_an_earlier_job_is_there(
    deployment: Deployment, tmp_path: Path
) -> None:
    first = deployment.worker(runner=OnHost(deployment, "one"))
    started = tmp_path / "started"
    program = f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\ntime.sleep(60)"
    job_id = deployment.submit(program, timeout={"run": "3s"})
    wait_until(started.exists, 30, "it runs")
    first.drain()
    stop = f"{deployment.settings.root}/stops/default/{job_id}"
    commit(deployment.session(), [Create(stop, b'{"run_key": "of an earlier job"}')])
    deployment.worker(runner=OnHost(deployment, "two"))
    detail = deployment.wait(job_id, timeout=30)
    assert detail.job.error is not None
    assert detail.job.error.type == "RunTimeout"


class Stubborn(LocalRunner):
    """A local runner whose drivers take a given time to end."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(stand_ins(deployment.settings.state_dir), driver_main=DRIVER_MAIN)
        self.at_it, self.go_on = threading.Semaphore(0), threading.Event()

    def kill(self, run: str, *, grace_seconds: float) -> None:
        self.at_it.release()
        assert self.go_on.wait(60)
        super().kill(run, grace_seconds=grace_seconds)


def kill_by_client(deployment: Deployment, job_id: str, _: Path) -> None:
    deployment.client.kill(job_id)


def hang(_deployment: Deployment, _job_id: str, pid: Path) -> None:
    os.kill(int(pid.read_text()), signal.SIGSTOP)


@pytest.mark.parametrize(
    ("end", "status"), [(kill_by_client, Status.KILL), (hang, Status.ERROR_FAIL)], ids=["killed", "lost"]
)
def test_jobs_whose_end_takes_long_keep_no_other_from_being_started(
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[Deployment, str, Path], None],
    status: Status,
) -> None:
    set_default(monkeypatch, JobDispatcher, "threads", 2)
    monkeypatch.setattr("orchestrator.handlers.liveness._LEASE_MARGIN_SECONDS", -4.0)  # of a lease of 5 s
    runner = Stubborn(deployment)
    deployment.worker(slots=4, runner=runner)
    ended: dict[str, Path] = {}
    for number in range(2):
        pid = tmp_path / str(number)
        ended[deployment.submit(sleeps(pid), timeout={"lease": 5}, retry={"attempts": 1})] = pid
    wait_until(lambda: all(pid.exists() and pid.read_text() for pid in ended.values()), 30, "both run")
    for job_id, pid in ended.items():
        end(deployment, job_id, pid)
    try:
        assert runner.at_it.acquire(timeout=40)
        assert deployment.wait(deployment.submit("pass"), timeout=20).job.status is Status.SUCCESS
    finally:
        runner.go_on.set()
    assert [deployment.wait(job_id).job.status for job_id in ended] == [status] * 2


def test_a_cap_counts_what_ran_before_there_was_one(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescan_often(monkeypatch)
    pools = deployment.queues.pools  # as `config set` does
    worker = deployment.worker(slots=4)
    go = tmp_path / "go"
    program = waits_for(go)
    running = [deployment.submit(program) for _ in range(2)]
    wait_until(lambda: len(worker.dispatcher.in_flight.running()) == 2, 30, "two run without a cap")
    pools.change("default", cap=2)
    rescans = scans_of(worker)
    third = deployment.submit("pass")
    wait_until(lambda: rescans() > 5, 20, "the queue was looked at again and again")
    attempts = deployment.client.get(third).attempt
    go.touch()
    assert [deployment.wait(job_id).job.status for job_id in (*running, third)] == [Status.SUCCESS] * 3
    assert attempts == 0


def scans_of(worker: Worker) -> Callable[[], int]:
    """Count the scans of this worker from now on."""
    counted, consumer = [0], worker._consumer  # noqa: SLF001 - the condition of the tests
    scan = consumer._scan  # noqa: SLF001 - likewise

    def counting() -> float:
        counted[0] += 1
        return scan()

    consumer._scan = counting  # type: ignore[method-assign] # noqa: SLF001 - likewise
    return lambda: counted[0]


def test_a_worker_drains_within_ten_seconds_though_zookeeper_has_stopped_to_answer(
    tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    with EmbeddedZooKeeper(ServerConfig(tmp_path / "zookeeper", tick_ms=2_000, owner="tests")) as server:
        settings = Settings(zookeeper_hosts=server.hosts, state_dir=tmp_path / "state", session_timeout=20.0)
        frozen = Deployment(settings)
        worker = frozen.worker()
        wait_until(lambda: frozen.client.count(Queue.ACCEPT) == 0, 10, "it serves")
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            worker.drain()
            took = time.monotonic() - began
        finally:
            os.kill(pid, signal.SIGCONT)
        frozen.close()
    assert took < 10


def test_a_job_is_taken_again_when_the_session_of_its_lock_alone_is_lost(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init = LockSessions.__init__

    def tiny(self: LockSessions, session: Session) -> None:
        init(self, session)
        self._limit = 0  # each lock in a session of its own

    monkeypatch.setattr(LockSessions, "__init__", tiny)
    worker = deployment.worker()
    job_id, go = alone(deployment, tmp_path, "go")
    wait_until(lambda: deployment.client.progress(deployment.client.get(job_id)), 30, "it runs")
    job = worker.dispatcher.in_flight.get(job_id)
    assert job is not None
    wait_until(lambda: job.monitor.backend.polls > 1, 20, "what the backend says is known")
    wait_until(worker.dispatcher.timers.parked, 20, "it waits")
    assert job.claim.hold.session is not worker._set.session  # noqa: SLF001 - the object under test
    expire(job.claim.hold.session)
    wait_until(lambda: deployment.client.detail(job_id).held_by, 20, "it is held again")
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS
    worker.drain()
    worker._set.close()  # noqa: SLF001 - the sessions of the locks


def test_a_job_whose_commit_fails_for_a_bug_is_released_and_not_kept_for_ever(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescan_often(monkeypatch)
    broken = [True]

    def bug(steps: Iterable[Transition]) -> list[tuple[Transition, QueueError | None]]:
        if broken:
            list(steps)
            broken.clear()
            raise RuntimeError("a bug")
        return run_transitions(steps)

    monkeypatch.setattr("queues.dispatch.dispatcher.run_transitions", bug)
    deployment.worker()
    assert deployment.wait(deployment.submit("pass"), timeout=30).job.status is Status.SUCCESS


def test_a_backend_that_says_much_is_a_warning_like_any_other(deployment: Deployment, tmp_path: Path) -> None:
    class Talkative(LocalRunner):
        talks = False

        def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
            if self.talks:
                raise ConnectionError("<html>" * 20_000)
            return super().poll_many(runs)

    runner = Talkative(stand_ins(deployment.settings.state_dir), driver_main=DRIVER_MAIN)
    deployment.worker(runner=runner, warn_after=1)
    job_id, go = alone(deployment, tmp_path, "go")
    wait_until(lambda: deployment.client.progress(deployment.client.get(job_id)), 30, "it runs")
    runner.talks = True
    wait_until(lambda: deployment.client.get(job_id).status is Status.RUNNING_WARN, 20, "the warning")
    runner.talks = False
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS
