"""The writes of ZooKeeper for a job, from the server's own transaction log."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.config.settings import Settings
from orchestrator.model.states import Status
from queues import EmbeddedZooKeeper, ServerConfig
from queues.embedded.java import find_jars, find_java
from tests.jobs_support import Deployment, poll_often, waits_for
from tests.waiting import wait_until

MOST = 8  # submit, claim, intent, driver's start, driver's end, verdict, history, finish
TOOL = "org.apache.zookeeper.server.persistence.TxnLogToolkit"


@pytest.fixture
def own_deployment(tmp_path: Path, process_mark: str) -> Iterator[Deployment]:
    assert process_mark
    with EmbeddedZooKeeper(ServerConfig(tmp_path / "zookeeper", tick_ms=500)) as server:
        deployment = Deployment(
            Settings(
                zookeeper_hosts=server.hosts, root="/jobs", state_dir=tmp_path / "state", session_timeout=4.0
            )
        )
        yield deployment
        deployment.close()


def transactions(data_dir: Path) -> list[str]:
    """Each transaction as the server's own tool prints it, in order."""
    entries = []
    for log in sorted(data_dir.rglob("log.*")):
        command = [str(find_java().path), "-cp", str(find_jars() / "*"), TOOL, "-d", str(log)]
        dump = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")
        entries += re.split(r"(?m)^(?=\d+/\d+/\d+, .* session 0x)", dump)[1:]
    return entries


def of_job(entries: list[str], job_id: str) -> list[str]:
    """Those of one job, without the progress of its driver."""
    mine = [one for one in entries if job_id in one]
    return [one for one in mine if not re.search(r" multi setData:[^/]*/\S+/attempt-1-[^/]+/alive", one)]


def test_a_job_costs_eight_write_transactions_and_watching_it_none(
    own_deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll_often(monkeypatch)
    worker = own_deployment.worker()
    go = tmp_path / "go"
    job_id = own_deployment.submit(waits_for(go))
    wait_until(lambda: own_deployment.client.progress(own_deployment.client.get(job_id)), 30, "it runs")
    job = worker.dispatcher.in_flight.get(job_id)
    assert job is not None
    seen = job.monitor.backend.polls
    wait_until(lambda: job.monitor.backend.polls >= seen + 4, 60, "it was polled some more times")
    go.touch()
    assert own_deployment.wait(job_id).job.status is Status.SUCCESS
    own_deployment.close()
    mine = of_job(transactions(tmp_path / "zookeeper"), job_id)
    assert len(mine) == MOST, "\n".join(mine)
