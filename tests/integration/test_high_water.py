"""The water line of running jobs delays starts in their pool, and never longer than it should."""

from pathlib import Path
from typing import Any

import pytest
from kazoo.security import make_digest_acl

from orchestrator.admission import high_water
from orchestrator.admission.high_water import HighWater, reports_in
from orchestrator.model.job import JobState
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Reason
from orchestrator.worker import water_lines
from orchestrator.worker.water_lines import WaterLines
from orchestrator.worker.worker import Worker
from queues.model.codec import decode, encode
from queues.model.operations import Create, Delete, Set
from queues.store.commit import commit
from spark_runner.protocol.attempt import attempt_path
from tests.integration.test_measures import value
from tests.integration.test_waits import occupied, waits
from tests.jobs_support import ScriptedDeployment, rescan_often
from tests.queues_support import count_requests, expire
from tests.servers.zookeeper import zookeeper_client
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

WAIT_S = 30
POOL = "http"
JOB = "invoices-7"


@pytest.fixture(autouse=True)
def _prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(water_lines, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(high_water, "_LOOK_SECONDS", 0.05)


class Target:
    """A pool whose target is slow, as the drivers of its jobs report it."""

    def __init__(self, deployment: ScriptedDeployment, folder: Path, limit: float = 0.8) -> None:
        self.deployment, self.folder = deployment, folder
        self.nodes = Nodes(deployment.settings.root)
        self.client, self.session = deployment.client, deployment.queues.session
        deployment.queues.ensure_pool(POOL)
        self.client.change_pool(POOL, high_water=limit)

    def occupy(self, name: str = "invoices", pool: str = POOL) -> str:
        """A job that runs until `let_end`."""
        return occupied(self.deployment, self.folder / name, name=name, pool=pool)

    def let_end(self, name: str = "invoices") -> None:
        (self.folder / name).touch()

    def progress_path(self, job_id: str) -> str:
        record = self.deployment.queues.get(job_id)
        number = JobState.from_payload(record.payload).attempt
        return f"{attempt_path(self.deployment.queues.layout.record(job_id), record.run_key, number)}/alive"

    def fill(self, job_id: str, line: float, **more: object) -> None:
        """Write the progress of its driver."""
        push = {"tasks": 2, "stale": 0, "water_line": line, **more}
        document = {"phase": "INSERT", "pushes": {"orders": push}}
        commit(self.session, [Set(self.progress_path(job_id), encode(document), -1)])

    def reports(self) -> list[dict[str, Any]]:
        folder = self.nodes.water_reports(POOL)
        names = self.session.children(folder) or ()
        return [decode(found[0]) for name in names if (found := self.session.get(f"{folder}/{name}"))]

    def wait_reported(self, count: int = 1) -> list[dict[str, Any]]:
        wait_until(lambda: len(self.reports()) == count, WAIT_S, f"there are {count} reports")
        return self.reports()

    def submit(self, pool: str = POOL, **fields: object) -> str:
        return self.deployment.submit("pass", pool=pool, **fields)

    def delayed(self, pool: str = POOL) -> str:
        """A job that waits for the water line, which was reported before."""
        wait_until(lambda: any(reports_in(self.session, self.nodes, POOL)), WAIT_S, "it is reported")
        job_id = self.submit(pool)
        waits(self.deployment, job_id, Reason.HIGH_WATER)
        assert self.client.get(job_id).attempt == 0
        return job_id

    def assert_runs(self, job_id: str) -> None:
        assert self.deployment.wait(job_id).job.status is Status.SUCCESS


@pytest.fixture
def target(scripted_deployment: ScriptedDeployment, tmp_path: Path) -> Target:
    return Target(scripted_deployment, tmp_path)


# ---------------------------------------------------------------------- the rule
def test_no_job_of_a_pool_starts_while_a_running_one_has_filled_its_buffer(
    target: Target, scripted_deployment: ScriptedDeployment
) -> None:
    first, second = scripted_deployment.worker(), scripted_deployment.worker()
    running = target.occupy()
    target.fill(running, 0.79)
    target.assert_runs(target.submit())

    target.fill(running, 0.8)
    (report,) = target.wait_reported()
    assert report["worker"] in {first.name, second.name}
    job_id = target.delayed()
    waiting = waits(scripted_deployment, job_id, Reason.HIGH_WATER)
    assert waiting.message == (
        f"{running} of pool http has filled its buffer for orders to 80 %, and high_water is 80 %; "
        "the next job starts below 60 %"
    )
    target.assert_runs(scripted_deployment.submit("pass"))  # of another pool
    (load,) = [load for load in target.client.pool_loads() if load.pool == POOL]
    assert (load.limits.high_water, load.water_line) == (0.8, 0.8)
    assert max(value(worker, "water_line", pool=POOL) or 0.0 for worker in (first, second)) == 0.8

    target.fill(running, 0.65)  # it is full at some moments: no start at each of the others
    wait_until(lambda: target_line(first, second) == 0.65, WAIT_S, "it is seen")
    assert target.client.get(job_id).attempt == 0
    assert target.reports()

    target.fill(running, 0.59)
    target.assert_runs(job_id)
    assert target.client.get(running).status is Status.RUNNING
    target.let_end()
    target.assert_runs(running)


def target_line(*workers: Worker) -> float:
    return max(value(worker, "water_line", pool=POOL) or 0.0 for worker in workers)


@pytest.mark.parametrize(("of", "into"), [(POOL, f"{POOL}.low"), (f"{POOL}.low", POOL)])
def test_a_pool_and_its_low_lane_have_one_target(
    target: Target, scripted_deployment: ScriptedDeployment, of: str, into: str
) -> None:
    scripted_deployment.worker()
    running = target.occupy()
    target.fill(running, 1.0)
    target.wait_reported()
    if of != POOL:
        scripted_deployment.queues.ensure_pool(of)
    job_id = target.submit()
    if into != POOL:
        scripted_deployment.queues.ensure_pool(into)
        scripted_deployment.queues.move(job_id, Queue.ACCEPT, pool=into)
    waits(scripted_deployment, job_id, Reason.HIGH_WATER)
    target.fill(running, 0.1)
    target.assert_runs(job_id)


def test_each_push_of_a_job_counts_and_those_without_contact_do_not(
    target: Target, scripted_deployment: ScriptedDeployment
) -> None:
    scripted_deployment.worker()
    running = target.occupy()
    target.fill(running, 1.0)
    job_id = target.delayed()
    target.fill(running, 1.0, stale=2)
    target.assert_runs(job_id)


# ---------------------------------------------------------------------- its end
def test_the_wait_ends_with_the_job(target: Target, scripted_deployment: ScriptedDeployment) -> None:
    scripted_deployment.worker()
    target.fill(target.occupy(), 1.0)
    job_id = target.delayed()
    target.let_end()
    target.assert_runs(job_id)
    assert target.wait_reported(0) == []


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_the_wait_ends_when_the_limit_is_raised_or_removed(
    target: Target, scripted_deployment: ScriptedDeployment, limit: float
) -> None:
    scripted_deployment.worker()
    target.fill(target.occupy(), 0.9)
    job_id = target.delayed()
    target.client.change_pool(POOL, high_water=limit)
    if limit:
        target.fill(target_job(target), 0.7)
    target.assert_runs(job_id)
    target.wait_reported(0)


def test_a_line_that_is_below_a_raised_limit_holds_back_nothing(
    target: Target, scripted_deployment: ScriptedDeployment
) -> None:
    scripted_deployment.worker()
    target.fill(target.occupy(), 0.9)
    job_id = target.delayed()
    target.client.change_pool(POOL, high_water=0.95)
    target.assert_runs(job_id)
    target.wait_reported(0)
    target.client.change_pool(POOL, high_water=0.9)
    target.delayed()
    target.client.change_pool(POOL, high_water=0.0)


def target_job(target: Target) -> str:
    (row,) = target.client.jobs_in_queue(Queue.RUNNING, POOL)
    return str(row["id"])


def test_the_jobs_of_a_dead_worker_hold_back_none_although_they_are_not_lost_yet(
    target: Target, scripted_deployment: ScriptedDeployment, zookeeper_hosts: str, tmp_path: Path
) -> None:
    config = worker_config(scripted_deployment.settings, "scripted")
    machine = WorkerProcess("dies", tmp_path, config, zookeeper_hosts)
    with worker_processes(machine):
        machine.wait_started()
        running = target.occupy()
        target.fill(running, 1.0)
        target.wait_reported()
        survivor = scripted_deployment.worker()
        job_id = target.delayed()
        machine.kill()
        commit(target.session, [Delete(target.progress_path(running))])  # its driver died, too
        machine.end_session()
        target.assert_runs(job_id)
    assert target.client.get(running).queue is Queue.RUNNING
    wait_until(lambda: survivor.dispatcher.in_flight.get(running), WAIT_S, "it is adopted")


def test_the_worker_that_adopts_a_job_reports_it(
    target: Target, scripted_deployment: ScriptedDeployment
) -> None:
    first = scripted_deployment.worker()
    running = target.occupy()
    target.fill(running, 1.0)
    target.wait_reported()
    second = scripted_deployment.worker()
    first.drain()
    wait_until(lambda: [each["worker"] for each in target.reports()] == [second.name], WAIT_S, "it reports")
    job_id = target.delayed()
    target.fill(running, 0.0)
    target.assert_runs(job_id)


def test_a_worker_reports_again_after_its_session_was_lost(
    target: Target, scripted_deployment: ScriptedDeployment
) -> None:
    worker = scripted_deployment.worker()
    target.fill(target.occupy(), 1.0)
    target.wait_reported()
    before = worker.sessions.first.id
    expire(worker.sessions.first)
    path = target.nodes.water_report(POOL, worker.name)

    def owner() -> int:
        stat = target.session.exists(path)
        return 0 if stat is None else stat.owner

    wait_until(lambda: owner() not in {0, before}, WAIT_S, "it reports in its new session")
    target.delayed()


def test_progress_that_a_driver_does_not_write_again_is_stale(
    target: Target, scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_deployment.worker()
    target.fill(target.occupy(), 1.0)
    job_id = target.delayed()
    monkeypatch.setattr(water_lines, "_STALE_SECONDS", 1.0)
    target.assert_runs(job_id)
    assert target.wait_reported(0) == []


def test_a_report_that_a_worker_does_not_write_again_is_stale(
    target: Target, scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(high_water, "_STALE_SECONDS", 1.0)
    rescan_often(monkeypatch)
    report = {"worker": "hangs", "job": JOB, "push": "orders", "line": 1.0, "high_water": 0.8}
    hanging = scripted_deployment.session()
    hanging.ensure_path(target.nodes.water_reports(POOL))
    path = target.nodes.water_report(POOL, "hangs")
    commit(hanging, [Create(path, encode(report), ephemeral=True)])
    scripted_deployment.worker()
    target.assert_runs(target.submit())
    assert hanging.exists(path) is not None


def test_a_worker_writes_its_report_again(
    target: Target, scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(water_lines, "REFRESH_SECONDS", 0.1)
    worker = scripted_deployment.worker()
    target.fill(target.occupy(), 1.0)
    target.wait_reported()

    def version() -> int:
        stat = target.session.exists(target.nodes.water_report(POOL, worker.name))
        return 0 if stat is None else stat.version

    wait_until(lambda: version() > 2, WAIT_S, "it is written again")


# ---------------------------------------------------------------------- foreign nodes
@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[]", b'{"job": 1}', b'{"worker": "w", "job": "j", "push": "p", "line": NaN}'],
)
def test_progress_and_reports_of_others_hold_back_nothing(
    target: Target, scripted_deployment: ScriptedDeployment, zookeeper_hosts: str, content: bytes
) -> None:
    folder, good = target.nodes.water_reports(POOL), {"worker": "w", "job": JOB, "push": "p"}
    target.session.ensure_path(folder)
    persistent = encode({**good, "line": 1.0, "high_water": 0.8})
    with zookeeper_client(zookeeper_hosts) as other:
        other.create(f"{folder}/foreign", content, ephemeral=True)
        other.create(f"{folder}/persistent", persistent)
        closed = [make_digest_acl("mallory", "secret", all=True)]
        other.create(f"{folder}/closed", persistent, ephemeral=True, acl=closed)
        scripted_deployment.worker()
        running = target.occupy()
        commit(target.session, [Set(target.progress_path(running), content, -1)])
        target.assert_runs(target.submit())
        target.fill(running, 1.0)
        job_id = target.delayed()
        target.fill(running, 0.0)
        target.assert_runs(job_id)


def test_a_folder_of_reports_that_is_closed_holds_back_nothing(
    target: Target, scripted_deployment: ScriptedDeployment, zookeeper_hosts: str
) -> None:
    closed = [make_digest_acl("mallory", "secret", all=True)]
    with zookeeper_client(zookeeper_hosts) as other:
        target.session.ensure_path(f"{target.nodes.root}/high-water")
        other.create(target.nodes.water_reports(POOL), acl=closed)
        scripted_deployment.worker()
        running = target.occupy()
        target.fill(running, 1.0)
        target.assert_runs(target.submit())
        other.delete(target.nodes.water_reports(POOL))


def test_reports_count_after_an_operator_has_removed_their_folder(
    target: Target, scripted_deployment: ScriptedDeployment, zookeeper_hosts: str
) -> None:
    worker = scripted_deployment.worker()
    running = target.occupy()
    target.fill(running, 1.0)
    target.wait_reported()
    target.fill(running, 0.0)
    target.wait_reported(0)
    before = worker.sessions.first.connections
    with zookeeper_client(zookeeper_hosts) as other:
        other.delete(target.nodes.water_reports(POOL))
    target.assert_runs(target.submit())
    target.fill(running, 1.0)
    target.wait_reported()
    target.delayed()
    assert worker.sessions.first.connections == before


def test_a_folder_of_reports_that_is_closed_delays_no_report_of_another_pool(
    target: Target, scripted_deployment: ScriptedDeployment, zookeeper_hosts: str
) -> None:
    closed, pools = [make_digest_acl("mallory", "secret", all=True)], [f"closed-{each}" for each in range(4)]
    with zookeeper_client(zookeeper_hosts) as other:
        target.session.ensure_path(f"{target.nodes.root}/high-water")
        for pool in pools:
            other.create(target.nodes.water_reports(pool), acl=closed)
            scripted_deployment.queues.ensure_pool(pool)
            target.client.change_pool(pool, high_water=0.8)
        scripted_deployment.worker(slots=6)
        for pool in pools:
            target.fill(target.occupy(pool, pool), 1.0)
        running = target.occupy()
        target.fill(running, 1.0)
        job_id = target.delayed()
        target.fill(running, 0.0)
        target.assert_runs(job_id)
        target.wait_reported(0)
        for pool in pools:
            other.delete(target.nodes.water_reports(pool))


# ---------------------------------------------------------------------- what it costs
def test_a_pool_is_asked_for_without_requests_while_there_is_no_report(
    target: Target, scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues, now = scripted_deployment.queues, [0.0]
    rule = HighWater(queues.session, target.nodes, queues.pools, clock=lambda: now[0])
    assert rule.report(POOL) is None
    requests = count_requests(queues.session, monkeypatch)
    assert [rule.report(POOL) for _ in range(1000)] == 1000 * [None]
    assert requests() == 0
    other = scripted_deployment.session()
    report = {"worker": "w", "job": JOB, "push": "orders", "line": 1.0, "high_water": 0.8}
    commit(other, [Create(target.nodes.water_report(POOL, "w"), encode(report), ephemeral=True)])
    wait_until(lambda: rule.report(POOL), WAIT_S, "the watch reports it")
    before = requests()
    assert all(rule.report(POOL) for _ in range(1000))
    assert requests() == before
    now[0] += 2.0
    assert all(rule.report(POOL) for _ in range(1000))
    assert requests() == before + 1


def test_following_jobs_costs_one_read_of_their_progress_and_none_in_other_pools(
    target: Target, scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = scripted_deployment.worker(slots=3)
    jobs = [target.occupy(name) for name in ("a", "b")]
    for job_id in jobs:
        target.fill(job_id, 0.5)
    session, pools = scripted_deployment.session(), scripted_deployment.queues.pools
    follower = WaterLines(session, target.nodes, pools, "another", worker.dispatcher.in_flight.in_running)
    requests = count_requests(session, monkeypatch)
    follower.step()
    assert (requests(), follower.lines) == (1, {POOL: 0.5})
    target.client.change_pool(POOL, high_water=0.0)
    wait_until(lambda: not pools.limits(POOL)[0].high_water, WAIT_S, "the limit is gone")
    follower.step()
    assert (requests(), follower.lines) == (1, {})


def test_jobs_that_are_held_back_are_not_claimed_again_and_again(
    target: Target, scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescan_often(monkeypatch, 0.05)
    worker = scripted_deployment.worker()
    running = target.occupy()
    target.fill(running, 1.0)
    target.wait_reported()
    jobs = [target.delayed() for _ in range(3)]
    others = [scripted_deployment.submit("pass") for _ in range(5)]  # scans go on
    for job_id in others:
        target.assert_runs(job_id)
    assert [scripted_deployment.queues.get(job_id).claims for job_id in jobs] == [0, 0, 0]
    assert not value(worker, "jobs_declined_total", reason="high-water")


def test_a_job_that_was_claimed_before_the_line_rose_does_not_start_either(
    target: Target, scripted_deployment: ScriptedDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    capacity, is_late = vars(Worker)["_pool_capacity"], [True]
    monkeypatch.setattr(Worker, "_pool_capacity", lambda *each: None if is_late[0] else capacity(*each))
    worker = scripted_deployment.worker()
    running = target.occupy()
    target.fill(running, 1.0)
    target.wait_reported()
    job_id = target.submit()
    wait_until(lambda: value(worker, "jobs_declined_total", reason="high-water"), WAIT_S, "it is left")
    is_late[0] = False
    assert target.client.get(job_id).attempt == 0
    target.fill(running, 0.0)
    target.assert_runs(job_id)
