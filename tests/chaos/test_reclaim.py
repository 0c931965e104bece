"""How soon another worker holds the jobs of a killed worker."""

import time
from pathlib import Path

import pytest

from orchestrator.model.states import Status
from tests.chaos.mutations import Protection, take_out
from tests.chaos.pulse import Pulse
from tests.jobs_support import Deployment
from tests.sampling import is_whole
from tests.scripted.backend import Backend
from tests.scripted.judge import violations
from tests.scripted.runner import ScriptedRunner
from tests.servers.zookeeper import TICK_MS
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

JOBS = 20
MARGIN_S = 2.0


@pytest.mark.campaign
def test_the_jobs_of_a_killed_worker_are_held_by_another_as_soon_as_its_session_has_ended(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server decides when the session ends; after that, no timer may find the jobs."""
    settings, go = deployment.settings, tmp_path / "go"
    first = WorkerProcess(
        "first", tmp_path, worker_config(settings, "scripted", slots=JOBS), settings.zookeeper_hosts
    )
    with (
        Backend(settings.state_dir, settings.zookeeper_hosts) as backend,
        worker_processes(first),
        Pulse(deployment.session()) as pulse,
    ):
        ledger = backend.store.ledger
        ids = [deployment.submit(f"until({str(go)!r})") for _ in range(JOBS)]
        wait_until(lambda: len(ledger.starts()) == JOBS, 60, "all run")
        session, folder = deployment.session(), f"{settings.root}/locks/default"
        locks = [f"{folder}/{job_id}" for job_id in ids]

        def owners() -> list[int]:
            return [found[1].owner for found in session.get_many(locks) if found is not None]

        (gone,) = set(owners())
        deployment.worker(runner=ScriptedRunner(settings.state_dir), slots=JOBS)
        # It has scanned the queues at its start; from now on it finds jobs only by watches.
        take_out(Protection.RESCAN, monkeypatch.setattr)
        first.kill()
        killed = time.monotonic()
        wait_until(lambda: gone not in owners(), 60, "the server has ended the session")
        began = pulse.seconds
        wait_until(lambda: len(owners()) == JOBS, 60, "all are held by the second worker")
        took, in_all = pulse.seconds - began, time.monotonic() - killed
        go.touch()
        for job_id in ids:
            deployment.wait(job_id)
        assert violations(deployment.client, ledger, {job_id: {Status.SUCCESS} for job_id in ids}) == []
        assert set(ledger.starts().values()) == {1}
    assert took < MARGIN_S
    if is_whole():  # then no other test runs
        assert in_all < settings.session_timeout + 2 * TICK_MS / 1000 + MARGIN_S
