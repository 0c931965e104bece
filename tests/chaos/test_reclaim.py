"""How soon the jobs of a worker that was killed are in other hands."""

import time
from pathlib import Path

import pytest

from orchestrator.states import Status
from tests.jobs_support import Office
from tests.scripted.backend import Backend
from tests.scripted.judge import violations
from tests.scripted.runner import ScriptedRunner
from tests.servers.zookeeper import TICK_MS
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

JOBS = 20
MARGIN_S = 2.0


@pytest.mark.campaign  # it measures a time, so it runs when nothing else does
def test_the_jobs_of_a_killed_worker_are_held_by_another_soon_after_its_session_has_ended(
    office: Office, tmp_path: Path
) -> None:
    settings, go = office.settings, tmp_path / "go"
    first = WorkerProcess(
        "first", tmp_path, worker_config(settings, "scripted", slots=JOBS), settings.zookeeper_hosts
    )
    with Backend(settings.state_dir, settings.zookeeper_hosts) as backend, worker_processes(first):
        ledger = backend.store.ledger
        ids = [office.submit(f"until({str(go)!r})") for _ in range(JOBS)]
        wait_until(lambda: len(ledger.starts()) == JOBS, 60, "all run")
        office.worker(runner=ScriptedRunner(settings.state_dir), slots=JOBS)
        session, folder = office.session(), f"{settings.root}/locks/default"
        (gone,) = {stat.owner for job_id in ids if (stat := session.exists(f"{folder}/{job_id}"))}
        first.kill()
        killed = time.monotonic()

        def reclaimed() -> int:
            found = [session.exists(f"{folder}/{job_id}") for job_id in ids]
            return sum(stat is not None and stat.owner != gone for stat in found)

        wait_until(lambda: reclaimed() == JOBS, 60, "all are held by the second worker")
        took = time.monotonic() - killed
        go.touch()
        for job_id in ids:
            office.wait(job_id)
        assert violations(office.client, ledger, {job_id: {Status.SUCCESS} for job_id in ids}) == []
        assert set(ledger.starts().values()) == {1}
    assert took < settings.session_timeout + 2 * TICK_MS / 1000 + MARGIN_S
