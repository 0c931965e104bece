"""Workers are drained and started again in turn, under load: nobody notices."""

import itertools
import threading
from pathlib import Path

import pytest

from orchestrator.states import Queue, Status
from tests.chaos.job_site import Site
from tests.jobs_support import python_job
from tests.waiting import wait_until

DRAIN_S = 10.0
GAP_S = 5.0
LONG = 3
_BACKLOG = 30
_BATCH = 20


@pytest.mark.campaign  # it measures a time, so it runs when nothing else does
def test_three_workers_restarted_in_turn_lose_nothing_run_nothing_twice_and_keep_starting_jobs(
    zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    go, done = tmp_path / "go", threading.Event()
    with Site(tmp_path, zookeeper_hosts, zookeeper_root, workers=3, slots=4) as site:
        for number in range(LONG):
            site.submit(f"long-{number}", python_job(f"until({str(go)!r})"), {Status.SUCCESS})
        wait_until(lambda: len(site.starts()) == LONG, 60, "the long jobs run")

        def feed() -> None:
            numbers = itertools.count()
            while not done.is_set():
                if site.client.count(Queue.ACCEPT) > _BACKLOG:
                    done.wait(0.1)
                    continue
                for _ in range(_BATCH):
                    site.submit(f"short-{next(numbers)}", python_job("sleep(0.2)"), {Status.SUCCESS})

        feeder = threading.Thread(target=feed, name="feeder")
        feeder.start()
        try:
            wait_until(lambda: len(site.starts()) > LONG + _BATCH, 60, "the short ones are under way")
            for worker in site.workers:
                worker.drain(DRAIN_S)
                worker.start()
                worker.wait_started()
            seen = len(site.starts())
            wait_until(lambda: len(site.starts()) > seen + _BATCH, 60, "they go on after all that")
        finally:
            done.set()
            feeder.join()
        running = {view.id for view in site.client.jobs((Queue.RUNNING,)) if view.id.startswith("long")}
        assert len(running) == LONG, "the drivers went on"
        go.touch()
        site.wait_finished(60)
        site.drain()
        assert site.judge() == []
        assert set(site.starts().values()) == {1}
        times = sorted(line["at"] for line in site.ledger.lines())
        assert max(later - earlier for earlier, later in itertools.pairwise(times)) < GAP_S
