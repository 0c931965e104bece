"""Jobs whose drivers are on another host: its workers take them; without any, a worker here follows them."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from orchestrator.admission.hosts import Hosts
from orchestrator.compose import DRIVER_MAIN
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from queues.model.operations import Create, Delete
from queues.store.commit import commit
from spark_runner.runners.base import SubmissionPlace
from spark_runner.runners.local import LocalRunner
from tests.jobs_support import Deployment, rescan_often, sleeps, stand_ins, waits_for
from tests.pid_namespaces import IN_ANOTHER_PID_NAMESPACE
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

THERE = SubmissionPlace("local", "elsewhere", "boot", "store")


class Far(LocalRunner):
    """A runner that appears to be on another host."""

    def place(self) -> SubmissionPlace:
        return THERE

    def reaches(self, place: SubmissionPlace) -> bool:
        return place == THERE


def announce(deployment: Deployment, pools: list[str] | None) -> str:
    """Create the node of a worker of the other host; return its path."""
    session, nodes = deployment.session(), Nodes(deployment.settings.root)
    session.ensure_path(nodes.workers)
    path, document = nodes.worker("theirs"), {"places": [THERE.to_json()], "pools": pools}
    commit(session, [Create(path, json.dumps(document).encode(), ephemeral=True)])
    return path


def running_elsewhere(deployment: Deployment, go: Path) -> str:
    """A job without a holder whose driver runs on the other host."""
    theirs = deployment.worker(runner=Far(stand_ins(deployment.settings.state_dir), driver_main=DRIVER_MAIN))
    job_id = deployment.submit(waits_for(go))
    wait_until(lambda: deployment.client.progress(deployment.client.get(job_id)), 30, "it runs")
    theirs.drain()
    return job_id


def test_a_job_is_left_to_the_workers_of_the_host_where_its_driver_runs(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescan_often(monkeypatch)
    monkeypatch.setattr("orchestrator.admission.declined._LOOK_SECONDS", 0.1)
    monkeypatch.setattr("orchestrator.admission.hosts._LOOK_SECONDS", 0.2)
    go = tmp_path / "go"
    job_id = running_elsewhere(deployment, go)
    announced = announce(deployment, None)
    ours = deployment.worker()
    elsewhere = ours._context.admission.elsewhere  # noqa: SLF001 - the jobs that it leaves to others
    wait_until(lambda: not elsewhere.accepts(job_id), 20, "it was looked at and let go")
    wait_until(lambda: deployment.client.detail(job_id).held_by is None, 10, "it is not held")
    assert deployment.client.get(job_id).queue is Queue.RUNNING
    commit(deployment.session(), [Delete(announced)])  # the last worker of that host is gone
    wait_until(lambda: deployment.client.detail(job_id).held_by, 30, "it is followed from here")
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS


def test_workers_of_other_pools_count_for_nothing(deployment: Deployment, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job_id = running_elsewhere(deployment, go)
    announce(deployment, ["reports"])
    deployment.worker()
    wait_until(lambda: deployment.client.detail(job_id).held_by, 30, "it is followed from here")
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS


def test_a_worker_with_another_state_directory_does_not_take_a_driver_that_it_cannot_see_for_gone(
    deployment: Deployment, tmp_path: Path
) -> None:
    theirs = deployment.worker()
    pid = tmp_path / "pid"
    job_id = deployment.submit(sleeps(pid))
    wait_until(lambda: pid.exists() and pid.read_text(), 30, "it runs")
    theirs.drain()
    driver = int(pid.read_text())
    os.kill(driver, signal.SIGSTOP)  # else it would obey the stop node by itself
    worker = deployment.worker(runner=deployment.runner(tmp_path / "another"))
    deployment.client.kill(job_id)
    in_kill = lambda: [job for job in worker.dispatcher.timers.parked() if job.claim.queue == Queue.KILL]  # noqa: E731
    wait_until(in_kill, 30, "the kill waits for the driver's own end")
    os.kill(driver, signal.SIGCONT)
    assert deployment.wait(job_id).job.status is Status.KILL
    wait_until(lambda: not psutil.pid_exists(driver), 10, "it has ended")


@pytest.mark.usefixtures("pid_namespaces")
def test_a_worker_in_another_pid_namespace_of_the_host_does_not_take_a_driver_that_it_cannot_see_for_gone(
    deployment: Deployment, tmp_path: Path
) -> None:
    ours = deployment.worker()
    job_id = deployment.submit(waits_for(tmp_path / "go"))
    wait_until(lambda: deployment.client.progress(deployment.client.get(job_id)), 30, "it runs")
    ours.drain()
    config = worker_config(deployment.settings, "stand-in")
    hosts = deployment.settings.zookeeper_hosts
    theirs = WorkerProcess("theirs", tmp_path, config, hosts, wrapper=IN_ANOTHER_PID_NAMESPACE)
    with worker_processes(theirs):
        theirs.wait_started()
        wait_until(lambda: deployment.client.detail(job_id).held_by, 30, "it is followed from there")
        (tmp_path / "go").touch()
        assert deployment.wait(job_id).job.status is Status.SUCCESS
        after = deployment.submit("pass")
        assert deployment.wait(after).job.status is Status.SUCCESS
    reached = deployment.runner().reaches(
        SubmissionPlace(**deployment.client.detail(after).attempts[0]["place"])
    )
    assert not reached, "what it has started cannot be seen from here either"


@pytest.mark.parametrize(
    ("pools", "asked", "expected"),
    [
        (None, "any", True),
        (["a"], "a", True),
        (["a"], "a.low", True),
        (["a"], "b", False),
        ([], "a", False),
    ],
)
def test_a_worker_serves_its_pools_and_their_low_lanes(
    deployment: Deployment, pools: list[str] | None, asked: str, expected: bool
) -> None:
    announce(deployment, pools)
    hosts = Hosts(deployment.session(), Nodes(deployment.settings.root))
    assert hosts.has_worker(replace(THERE, boot="the next"), asked) is expected
    assert not hosts.has_worker(replace(THERE, host="a third one"), asked)
    assert not hosts.has_worker(replace(THERE, store="another directory"), asked)
