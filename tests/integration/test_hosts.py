"""Jobs whose drivers are on another host: left to its workers, followed from here when it has none."""

import json
from pathlib import Path

import pytest

from orchestrator.admission.hosts import Hosts
from orchestrator.nodes import Nodes
from orchestrator.states import Queue, Status
from orchestrator.wiring import DRIVER_MAIN
from queues.operations import Create, Delete
from queues.transaction import commit
from spark_runner.runners.base import Place
from spark_runner.runners.local import LocalRunner
from tests.jobs_support import STAND_IN, Office
from tests.waiting import wait_until

ELSEWHERE = "elsewhere"


class Far(LocalRunner):
    """A runner of another host, as far as anybody can tell."""

    def place(self) -> Place:
        return Place("local", ELSEWHERE, "boot")

    def reaches(self, place: Place) -> bool:
        return place.host == ELSEWHERE


def announce(office: Office, pools: list[str] | None) -> str:
    """A worker of the other host, as its node says; returns the node."""
    session, nodes = office.session(), Nodes(office.settings.root)
    session.ensure_path(nodes.workers)
    path = nodes.worker("theirs")
    commit(session, [Create(path, json.dumps({"host": ELSEWHERE, "pools": pools}).encode(), ephemeral=True)])
    return path


def running_elsewhere(office: Office, go: Path) -> str:
    """A job whose driver runs on the other host, and that nobody holds."""
    theirs = office.worker(
        runner=Far(office.settings.state_dir, driver_main=DRIVER_MAIN, spark_submit=STAND_IN)
    )
    program = f"import pathlib, time\nwhile not pathlib.Path({str(go)!r}).exists(): time.sleep(0.05)"
    job_id = office.submit(program)
    wait_until(lambda: office.client.progress(office.client.get(job_id)), 30, "it runs")
    theirs.drain()
    return job_id


def test_a_job_is_left_to_the_workers_of_the_host_where_its_driver_runs(
    office: Office, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    job_id = running_elsewhere(office, go)
    announced = announce(office, None)
    ours = office.worker()
    elsewhere = ours._context.elsewhere  # noqa: SLF001 - what it leaves to others
    wait_until(lambda: not elsewhere.accepts(job_id), 20, "it was looked at and let go")
    wait_until(lambda: office.client.detail(job_id).held_by is None, 10, "nobody holds it")
    assert office.client.get(job_id).queue is Queue.RUNNING
    commit(office.session(), [Delete(announced)])  # the last worker of that host is gone
    wait_until(lambda: office.client.detail(job_id).held_by, 30, "it is followed from here")
    go.touch()
    assert office.wait(job_id).job.status is Status.SUCCESS


def test_workers_of_other_pools_count_for_nothing(office: Office, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job_id = running_elsewhere(office, go)
    announce(office, ["reports"])
    office.worker()
    wait_until(lambda: office.client.detail(job_id).held_by, 30, "it is followed from here")
    go.touch()
    assert office.wait(job_id).job.status is Status.SUCCESS


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
    office: Office, pools: list[str] | None, asked: str, expected: bool
) -> None:
    announce(office, pools)
    hosts = Hosts(office.session(), Nodes(office.settings.root))
    assert hosts.has_worker(ELSEWHERE, asked) is expected
    assert not hosts.has_worker("a third one", asked)
