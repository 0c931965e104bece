"""ZooKeeper is down for much longer than a session: drivers continue, and no outcome is lost."""

import threading
from pathlib import Path
from typing import Self

import pytest

from orchestrator.config.settings import Settings
from orchestrator.model.states import Status
from queues import EmbeddedZooKeeper, ServerConfig
from spark_runner.runners.base import RunState
from tests.chaos.job_site import SESSION_S, Site
from tests.jobs_support import Deployment, python_job
from tests.sampling import is_whole
from tests.servers.zookeeper import TICK_MS
from tests.waiting import wait_until

pytestmark = pytest.mark.campaign

END_S = 90
AWAY_S = [5 * SESSION_S, *([60.0] if is_whole() else [])]
_WAITS = "import pathlib, time\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.1)\n"


class ScriptedJobs:
    """Jobs with every kind of end while ZooKeeper is down, and one that continues; a context manager."""

    def __init__(self, folder: Path, hosts: str) -> None:
        self._go, self._end = folder / "go", folder / "end"
        self._programs = {
            "continues": (f"until({str(self._go)!r})", Status.SUCCESS),
            "succeeds": (f"until({str(self._end)!r})", Status.SUCCESS),
            "fails": (f"until({str(self._end)!r})\nfail('no rows today')", Status.ERROR_FAIL),
            "leaves": (f"until({str(self._end)!r})\nleave(0)", Status.ERROR_FAIL),
        }
        self._site = Site(folder, hosts, "/scripted", workers=2, slots=4)

    def __enter__(self) -> Self:
        self._site.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._site.__exit__()

    def begin(self) -> None:
        """Submit the jobs, and wait until all run."""
        for job_id, (program, status) in self._programs.items():
            self._site.submit(job_id, python_job(program), {status})
        wait_until(lambda: len(self._site.starts()) == len(self._programs), END_S, "all run")

    def end(self) -> None:
        """End all jobs but one."""
        self._end.touch()

    def judge(self) -> None:
        """After the outage: the outcomes are recorded, and the remaining job is where it was."""
        site = self._site
        site.submit("comes-later", python_job("pass"), {Status.SUCCESS})
        wait_until(lambda: site.finished() == len(self._programs), END_S, "all but one have ended")
        assert site.client.get("continues").status is Status.RUNNING
        continuing = f"{site.client.detail('continues').run_key}-1"
        # A job may finish just before its driver, which records the outcome and then ends.
        wait_until(lambda: site.backend.running() == [continuing], END_S, "only that driver is left")
        self._go.touch()
        site.wait_finished(END_S)
        site.drain()
        assert site.judge() == []
        assert set(site.starts().values()) == {1}
        assert {site.client.get(job_id).attempt for job_id in site.expected} == {1}


class LocalJobs:
    """Two jobs whose drivers are processes of this host; a context manager."""

    def __init__(self, folder: Path, hosts: str) -> None:
        self._go, self._end = folder / "go", folder / "end"
        self._deployment = Deployment(
            Settings(
                zookeeper_hosts=hosts,
                root="/local",
                state_dir=folder / "state",
                session_timeout=SESSION_S,
                kill_grace=2.0,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._deployment.close()

    def begin(self) -> None:
        """As for the scripted ones."""
        self._deployment.worker(slots=2)
        self._continues = self._deployment.submit(_WAITS.format(str(self._go)))
        self._ends = self._deployment.submit(_WAITS.format(str(self._end)))
        client = self._deployment.client
        jobs = (self._continues, self._ends)
        wait_until(lambda: all(client.progress(client.get(job)) for job in jobs), END_S, "both run")

    def end(self) -> None:
        """End one of the two."""
        self._end.touch()

    def judge(self) -> None:
        """As for the scripted ones."""
        deployment = self._deployment
        ended = deployment.wait(self._ends, timeout=END_S)
        assert (ended.job.status, ended.job.attempt) == (Status.SUCCESS, 1)
        run = f"{deployment.client.detail(self._continues).run_key}-1"
        assert [found.state for found in deployment.runner().find(run)] == [RunState.RUNNING]
        self._go.touch()
        continued = deployment.wait(self._continues, timeout=END_S)
        assert (continued.job.status, continued.job.attempt) == (Status.SUCCESS, 1)


@pytest.mark.parametrize("seconds", AWAY_S)
def test_drivers_continue_while_zookeeper_is_away_and_none_is_reported_lost(
    tmp_path: Path, process_mark: str, seconds: float
) -> None:
    assert process_mark
    folders = [tmp_path / name for name in ("scripted", "local")]
    for folder in folders:
        folder.mkdir()
    config = ServerConfig(tmp_path / "zookeeper", tick_ms=TICK_MS, owner="tests")
    with (
        EmbeddedZooKeeper(config) as server,
        ScriptedJobs(folders[0], server.hosts) as scripted,
        LocalJobs(folders[1], server.hosts) as local,
    ):
        both = (scripted, local)
        for jobs in both:
            jobs.begin()
        server.kill()
        for jobs in both:
            jobs.end()
        # The duration itself is the fault, so there is no condition to wait for; one outage serves all jobs.
        threading.Event().wait(seconds)
        server.start()
        for jobs in both:
            jobs.judge()
