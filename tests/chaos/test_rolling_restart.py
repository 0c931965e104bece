"""Workers are drained and started again in turn, under load: jobs keep starting."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.model.states import Queue, Status
from tests.chaos.job_site import Site
from tests.chaos.pulse import Pulse
from tests.jobs_support import python_job
from tests.sampling import is_whole
from tests.waiting import wait_until
from tests.workers import WorkerProcess

DRAIN_S = 10.0
GAP_S = 5.0
LONG = 3
_BACKLOG = 30
_BATCH = 20
_END_S = 60


@contextmanager
def fed(site: Site) -> Iterator[None]:
    """Keep short jobs waiting."""
    done = threading.Event()

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
        yield
    finally:
        done.set()
        feeder.join()


class Starts:
    """Counts starts of jobs, and the longest time between two of them.

    A whole campaign has the machine to itself and uses wall time; else the clock is a `Pulse`.
    """

    def __init__(self, site: Site, pulse: Pulse) -> None:
        self._site = site
        self._clock = time.monotonic if is_whole() else lambda: pulse.seconds
        self._seen, self._at = self.count(), self._clock()
        self.longest = 0.0

    def count(self) -> int:
        return len(self._site.starts())

    def look(self) -> None:
        now, seen = self._clock(), self.count()
        self.longest = max(self.longest, now - self._at)
        if seen > self._seen:
            self._seen, self._at = seen, now

    def wait_for_more(self, what: str) -> None:
        """Wait until as many more jobs have started as are submitted in one batch."""
        before = self.count()

        def have_come() -> bool:
            self.look()
            return self._seen >= before + _BATCH

        wait_until(have_come, _END_S, what)

    def wait_started(self, worker: WorkerProcess) -> None:
        """Wait until a worker has a session."""

        def has_session() -> bool:
            self.look()
            return worker.has_session

        wait_until(has_session, _END_S, f"{worker.name} starts")

    def drain(self, worker: WorkerProcess) -> float:
        """Drain a worker; returns the seconds that it took."""
        began = self._clock()
        worker.process.terminate()

        def has_ended() -> bool:
            self.look()
            return not worker.is_running

        wait_until(has_ended, _END_S, f"{worker.name} has ended")
        assert worker.process.returncode == 0, worker.log.read_text("utf-8")
        return self._clock() - began


@pytest.mark.campaign
@pytest.mark.usefixtures("judged")
def test_three_workers_restarted_in_turn_lose_nothing_run_nothing_twice_and_keep_starting_jobs(
    zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path, process_mark: str
) -> None:
    assert process_mark
    go = tmp_path / "go"
    with (
        Site(tmp_path, zookeeper_hosts, zookeeper_root, workers=3, slots=4) as site,
        Pulse(site.session) as pulse,
    ):
        for number in range(LONG):
            site.submit(f"long-{number}", python_job(f"until({str(go)!r})"), {Status.SUCCESS})
        wait_until(lambda: len(site.starts()) == LONG, _END_S, "the long jobs run")
        with fed(site):
            wait_until(lambda: len(site.starts()) > LONG, _END_S, "the short jobs start")
            starts = Starts(site, pulse)
            starts.wait_for_more("the short ones are under way")
            for worker in site.workers:
                assert starts.drain(worker) < DRAIN_S
                starts.wait_for_more(f"the others start jobs without {worker.name}")
                worker.start()
                starts.wait_for_more(f"the others start jobs while {worker.name} starts")
                starts.wait_started(worker)
            starts.wait_for_more("jobs start after all restarts")
        running = {view.id for view in site.client.jobs((Queue.RUNNING,)) if view.id.startswith("long")}
        assert len(running) == LONG, "the drivers continued"
        go.touch()
        site.wait_finished(_END_S)
        site.drain()
        assert site.judge() == []
        assert set(site.starts().values()) == {1}
        assert starts.longest < GAP_S
