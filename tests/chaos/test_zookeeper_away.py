"""ZooKeeper is away for much longer than a session: drivers go on, and what ended meanwhile is not lost."""

import threading
from pathlib import Path

import pytest

from orchestrator.settings import Settings
from orchestrator.states import Status
from queues.embedded import EmbeddedZooKeeper, ServerConfig
from spark_runner.runners.base import RunState
from tests.chaos.job_site import SESSION_S, Site
from tests.jobs_support import Office, python_job
from tests.servers.zookeeper import TICK_MS
from tests.waiting import wait_until

END_S = 90


def server_in(folder: Path) -> EmbeddedZooKeeper:
    return EmbeddedZooKeeper(ServerConfig(folder / "zookeeper", tick_ms=TICK_MS, owner="tests"))


def be_away(server: EmbeddedZooKeeper, seconds: float) -> None:
    """The time itself is the fault: no condition stands for it."""
    threading.Event().wait(seconds)
    server.start()


@pytest.mark.parametrize("seconds", [5 * SESSION_S, 60.0])
def test_scripted_drivers_go_on_while_zookeeper_is_away_and_none_is_reported_lost(
    tmp_path: Path, process_mark: str, seconds: float
) -> None:
    assert process_mark
    go, end = tmp_path / "go", tmp_path / "end"
    programs = {
        "goes-on": (f"until({str(go)!r})", Status.SUCCESS),
        "succeeds": (f"until({str(end)!r})", Status.SUCCESS),
        "fails": (f"until({str(end)!r})\nfail('no rows today')", Status.ERROR_FAIL),
        "leaves": (f"until({str(end)!r})\nleave(0)", Status.SUCCESS),
    }
    with server_in(tmp_path) as server, Site(tmp_path, server.hosts, "/away", workers=2, slots=4) as site:
        for job_id, (program, status) in programs.items():
            site.submit(job_id, python_job(program), {status})
        wait_until(lambda: len(site.starts()) == len(programs), END_S, "all run")
        server.kill()
        end.touch()
        be_away(server, seconds)
        site.submit("comes-later", python_job("pass"), {Status.SUCCESS})
        wait_until(lambda: site.finished() == len(programs), END_S, "all but one have ended")
        assert site.client.get("goes-on").status is Status.RUNNING
        going_on = f"{site.client.detail('goes-on').run_key}-1"
        # A job may finish a moment before its driver, which records the outcome and then ends.
        wait_until(lambda: site.backend.running() == [going_on], END_S, "only that driver is left")
        go.touch()
        site.wait_finished(END_S)
        site.drain()
        assert site.judge() == []
        assert set(site.starts().values()) == {1}
        assert {site.client.get(job_id).attempt for job_id in site.expected} == {1}


def test_local_drivers_go_on_while_zookeeper_is_away_and_none_is_reported_lost(
    tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    go, end = tmp_path / "go", tmp_path / "end"
    waits = "import pathlib, time\nwhile not pathlib.Path({!r}).exists(): time.sleep(0.1)\n"
    with server_in(tmp_path) as server:
        settings = Settings(
            zookeeper_hosts=server.hosts,
            root="/away",
            state_dir=tmp_path / "state",
            session_timeout=SESSION_S,
            kill_grace=2.0,
        )
        office = Office(settings)
        try:
            office.worker(slots=2)
            goes_on, ends = office.submit(waits.format(str(go))), office.submit(waits.format(str(end)))
            wait_until(
                lambda: all(office.client.progress(office.client.get(j)) for j in (goes_on, ends)),
                END_S,
                "both run",
            )
            server.kill()
            end.touch()
            be_away(server, 5 * SESSION_S)
            ended = office.wait(ends, timeout=END_S)
            assert (ended.job.status, ended.job.attempt) == (Status.SUCCESS, 1)
            run = f"{office.client.detail(goes_on).run_key}-1"
            assert [found.state for found in office.runner().find(run)] == [RunState.RUNNING]
            go.touch()
            went_on = office.wait(goes_on, timeout=END_S)
            assert (went_on.job.status, went_on.job.attempt) == (Status.SUCCESS, 1)
        finally:
            office.close()
