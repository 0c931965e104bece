"""Failovers to ZooKeeper servers with a wrong clock: nothing ends, is given up, is removed or begins."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.client.client import Client
from orchestrator.compose import build_client, build_queue_set
from orchestrator.handlers import liveness
from orchestrator.handlers.attempt_monitor import AttemptMonitor
from orchestrator.handlers.hooks import Hooks
from orchestrator.handlers.job_context import JobContext
from orchestrator.leader.queued_timeout import QueuedTimeout
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import from_text
from orchestrator.schedules.planner import Planner
from orchestrator.worker.worker import Worker
from queues.model.operations import Delete
from queues.queue_set import QueueSet
from queues.store.commit import commit
from spark_runner.protocol.attempt import Attempt
from spark_runner.runners.base import RunState, Submission, SubmitRequest
from tests.jobs_support import ScriptedDeployment, python_job
from tests.scripted.runner import ScriptedRunner
from tests.servers.wrong_clock import FailingOver
from tests.waiting import wait_until

HOUR = 3600.0
LIMITS = {"run": "1h", "submit": "5m", "queued": "1h"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingOver]:
    with FailingOver(tmp_path_factory.mktemp("failing-over")) as running:
        yield running


@pytest.fixture
def zookeeper_hosts(server: FailingOver) -> str:
    """The server of this file, with the right clock."""
    server.fail_over(0)
    return server.hosts


class NeverTaken(ScriptedRunner):
    """The driver of the job `idle` never finishes its start."""

    def __init__(self, directory: Path, idle: dict[str, Submission]) -> None:
        super().__init__(directory)
        self._idle = idle  # by run, for all workers

    def submit(self, request: SubmitRequest) -> Submission:
        if "idle" not in request.name:
            return super().submit(request)
        self._idle[request.run] = Submission(request.run, request.incarnation, RunState.RUNNING)
        return self._idle[request.run]

    def find(self, run: str) -> list[Submission]:
        return [self._idle[run]] if run in self._idle else super().find(run)

    def kill(self, run: str, *, grace_seconds: float) -> None:
        self._idle.pop(run, None)
        super().kill(run, grace_seconds=grace_seconds)


class Site:
    """One job in each state with a time limit, and a schedule."""

    def __init__(self, deployment: ScriptedDeployment, folder: Path, looks: Counter[str]) -> None:
        self.deployment, self.go, self.looks = deployment, folder / "go", looks
        self._idle = dict[str, Submission]()
        self.worker = self.start_worker()
        deployment.queues.ensure_pool("halted")
        deployment.queues.pools.change("halted", paused=True)
        self.running = deployment.submit(f"until({str(self.go)!r})", timeout=LIMITS)
        self.idle = deployment.submit(
            "pass", name="idle", timeout=LIMITS, retry={"submissions": 1, "attempts": 1}
        )
        self.done = deployment.submit("pass")
        self.queued = deployment.submit("pass", pool="halted", timeout=LIMITS)
        self.delayed = deployment.client.submit(python_job("pass"), delay=HOUR).id
        soon = datetime.now(UTC) + timedelta(minutes=30)  # within the jump but not within the test
        hourly = python_job("pass", name="hourly", schedule={"cron": f"{soon:%M} * * * *"})
        deployment.client.schedules.put(hourly)
        self.handled = deployment.client.schedules.get("hourly").handled
        wait_until(lambda: deployment.client.get(self.done).queue is Queue.FINISH, 30, "one has ended")
        wait_until(lambda: self.states(self.running) == ["started"], 30, "one runs")
        wait_until(lambda: self.looks[self.idle] > 0, 30, "one is submitted")

    def start_worker(self) -> Worker:
        runner = NeverTaken(self.deployment.settings.state_dir, self._idle)
        return self.deployment.worker(slots=4, runner=runner, retention=HOUR)

    def new_client(self) -> QueueSet:
        """A client that connects now and has not read the time before."""
        return build_queue_set(self.deployment.session(), self.deployment.settings, owner="new-client")

    def look_at_all(self) -> None:
        """Let the worker poll its jobs a few times and start those that seem due."""
        after = {job_id: self.looks[job_id] + 3 for job_id in (self.running, self.idle)}

        def looked() -> bool:
            for job_id in after:
                if (held := self.worker.dispatcher.in_flight.get(job_id)) is not None:
                    held.wake()
            return all(self.looks[job_id] >= count for job_id, count in after.items())

        wait_until(looked, 30, "the worker has looked at both")
        probe = self.deployment.client.submit(python_job("pass", name="probe")).id
        assert self.deployment.wait(probe).job.status is Status.SUCCESS

    def lead(self, queue_set: QueueSet) -> None:
        """The duties of the leader, by the clock of this queue set."""
        QueuedTimeout(queue_set, Hooks(), tuple).step()
        client = build_client(queue_set.session, self.deployment.settings)
        Planner(client.schedules, submit=client.enqueue, get=client.get, fence=tuple).step()

    def states(self, job_id: str) -> list[str]:
        return [attempt["state"] for attempt in self.deployment.client.detail(job_id).attempts]

    def assert_untouched(self) -> None:
        deployment = self.deployment
        queues = {
            job_id: deployment.client.get(job_id).queue
            for job_id in (self.running, self.idle, self.done, self.queued, self.delayed)
        }
        assert queues == {
            self.running: Queue.RUNNING,
            self.idle: Queue.RUNNING,
            self.done: Queue.FINISH,
            self.queued: Queue.ACCEPT,
            self.delayed: Queue.ACCEPT,
        }
        assert [self.states(self.running), self.states(self.idle)] == [["started"], ["intent"]]
        assert deployment.client.schedules.get("hourly").handled == self.handled

    def end_well(self) -> None:
        self.go.touch()
        detail = self.deployment.wait(self.running)
        assert (detail.job.status, len(detail.attempts)) == (Status.SUCCESS, 1)
        self.deployment.client.kill(self.idle)
        assert self.deployment.wait(self.idle).job.status is Status.CANCEL


@pytest.fixture
def site(
    scripted_deployment: ScriptedDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Site]:
    looks, real = Counter[str](), liveness.age

    def counting(job: JobContext, attempt: Attempt, monitor: AttemptMonitor) -> float:
        seconds = real(job, attempt, monitor)
        looks[job.id] += 1
        return seconds

    for module in ("supervision", "submission"):
        monkeypatch.setattr(f"orchestrator.handlers.{module}.age", counting)
    return lambda: Site(scripted_deployment, tmp_path, looks)


@pytest.mark.parametrize("ahead", [2 * HOUR, -2 * HOUR], ids=["ahead", "behind"])
def test_a_failover_to_a_server_with_a_wrong_clock_changes_nothing_and_work_continues(
    site: Callable[[], Site], server: FailingOver, ahead: float
) -> None:
    here = site()
    for seconds in (ahead, 0):
        server.fail_over(seconds)
        here.look_at_all()
        here.lead(here.deployment.queues)
        here.lead(here.new_client())
        here.worker.drain()
        here.worker = here.start_worker()  # it has not seen the adopted jobs before
        here.look_at_all()
        here.assert_untouched()
    here.end_well()


@pytest.mark.parametrize("ahead", [2 * HOUR, -2 * HOUR], ids=["ahead", "behind"])
def test_new_clients_find_the_time_when_every_client_that_measured_it_is_gone(
    site: Callable[[], Site], server: FailingOver, ahead: float
) -> None:
    here = site()
    here.deployment.close()
    server.fail_over(ahead)
    here.deployment.queues = here.new_client()
    here.deployment.client = Client(here.deployment.queues)
    here.worker = here.start_worker()
    here.look_at_all()
    here.lead(here.new_client())
    here.assert_untouched()
    server.fail_over(0)
    here.look_at_all()
    here.assert_untouched()
    here.end_well()


def test_nothing_is_ended_or_removed_when_the_only_clock_is_ahead(
    site: Callable[[], Site], server: FailingOver
) -> None:
    here = site()
    here.deployment.close()
    server.fail_over(2 * HOUR)
    session = here.deployment.session()
    commit(session, [Delete(here.deployment.queues.layout.clock)])  # with the stored time
    here.deployment.queues = here.new_client()
    here.deployment.client = Client(here.deployment.queues)
    here.worker = here.start_worker()
    here.look_at_all()
    here.lead(here.new_client())
    job = here.deployment.client.get
    assert job(here.queued).queue is Queue.ACCEPT
    assert job(here.done).queue is Queue.FINISH
    assert [job(job_id).queue for job_id in (here.running, here.idle)] == [Queue.RUNNING] * 2
    here.deployment.queues.pools.change("halted", paused=False)
    assert here.deployment.wait(here.queued).job.status is Status.SUCCESS, "it has not waited for an hour"
    server.fail_over(0)
    here.look_at_all()
    here.lead(here.deployment.queues)
    assert abs(here.deployment.queues.clock.now_ms() - here.new_client().clock.now_ms()) < 5_000
    assert (
        from_text(here.deployment.client.schedules.get("hourly").handled) <= here.new_client().clock.now_ms()
    )
    here.end_well()
