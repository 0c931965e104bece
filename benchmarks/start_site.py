"""The site of the jobs of benchmarks/start.py: one ZooKeeper, one worker, one client."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from orchestrator import Client
from orchestrator.model.states import Status
from queues import EmbeddedZooKeeper, ItemNotFound, ServerConfig
from spark_runner.runners.base import SubmitRequest
from spark_runner.runners.class_archive.archives import ClassArchives
from spark_runner.runners.class_archive.store import fit_of
from spark_runner.runners.launch import driver_environment
from spark_runner.runners.run_directory import RunDirectory
from spark_runner.runners.spark_settings import SHORT_JOB_FLAGS, chosen_options, for_drivers, quick_flags

DEAD_SECONDS = 900.0
LOOK_SECONDS = 0.01  # between two checks of a condition: the precision of the figures
WARM_LOOK_SECONDS = 2.5  # a worker checks every two seconds whether a server has opened


@dataclass
class Site:
    """One ZooKeeper, one worker, one client."""

    client: Client
    worker: subprocess.Popen[bytes]
    environment: dict[str, str]

    def submit(self, file: Path, job_id: str) -> "subprocess.Popen[bytes]":
        """Start `job submit`."""
        command = [sys.executable, "-m", "orchestrator", "job", "submit", str(file), "--id", job_id]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL)

    def wait(self, job_id: str, status: Status) -> None:
        """Wait until the record has this status; any other final status is an error."""
        deadline = time.monotonic() + DEAD_SECONDS
        while time.monotonic() < deadline:
            with suppress(ItemNotFound):  # `job submit` has not put it yet
                job = self.client.get(job_id)
                if job.status is status:
                    return
                if job.ended:
                    sys.exit(f"{job_id} is {job.status}: {job.error}")
            time.sleep(LOOK_SECONDS)
        sys.exit(f"{job_id} has not reached {status}")


@contextmanager
def site(folder: Path, cache_dir: Path, **environment: str) -> Iterator[Site]:
    """Yield a site with a new worker."""
    folder.mkdir(parents=True)
    with EmbeddedZooKeeper(ServerConfig(folder / "zookeeper", long_run=True)) as server:
        mine = {
            **os.environ,
            "ZOOKEEPER_HOSTS": server.hosts,
            "ORCHESTRATOR_STATE_DIR": str(folder / "state"),
            "ORCHESTRATOR_CACHE_DIR": str(cache_dir),
            "ORCHESTRATOR_SLOTS": "4",
            **environment,
        }
        log = (folder / "worker.log").open("wb")
        worker = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "worker"], env=mine, stdout=log, stderr=log
        )
        try:
            with Client.connect(server.hosts) as client:
                while not client.status().workers:
                    time.sleep(LOOK_SECONDS)
                yield Site(client, worker, mine)
        finally:
            worker.terminate()
            worker.wait()


def run_ours(here: Site, files: list[Path]) -> float:
    """Wall seconds from the first `job submit` until the last SUCCESS."""
    began = time.monotonic()
    jobs = [(file, uuid.uuid4().hex) for file in files]
    started = [here.submit(file, job_id) for file, job_id in jobs]
    for _, job_id in jobs:
        here.wait(job_id, Status.SUCCESS)
    seconds = time.monotonic() - began
    for process in started:
        process.wait()
    return seconds


def wait_warm(state_dir: Path) -> None:
    """Wait until the worker has seen an open warm server."""
    deadline = time.monotonic() + DEAD_SECONDS
    while not list((state_dir / "warm" / "runs").glob("*/*/server.json")):
        if time.monotonic() > deadline:
            sys.exit("no warm server has opened")
        time.sleep(LOOK_SECONDS)
    time.sleep(WARM_LOOK_SECONDS)


def make_archive(cache_dir: Path, *, is_short: bool) -> None:
    """Make the class archive, as a worker does in the background on an idle host."""
    archives = ClassArchives(cache_dir)
    request = SubmitRequest("benchmark-1", uuid.uuid4().hex, "benchmark", {})
    conf_dir = archives.conf_dir(cache_dir)
    environment = driver_environment(request, RunDirectory(cache_dir), conf_dir, for_drivers(()))
    chosen = chosen_options(environment, {}) or []
    flags = quick_flags(SHORT_JOB_FLAGS, chosen) if is_short else []
    fit = fit_of(environment, {}, [*chosen, *flags], conf_dir)
    if fit is None:
        sys.exit("no archive fits the Java options that are set here: there is nothing to measure")
    with archives.store.locked():
        if archives.store.find(fit.key) is None:
            began = time.monotonic()
            archives.maker.make(fit)
            print(f"class archive made in {time.monotonic() - began:.1f} s")
