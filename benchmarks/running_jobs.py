"""The cost of watching many running jobs without changes.

Two worker processes hold jobs whose drivers are alive and never end. Last line: JSON, per worker: share of
one processor, memory, and the writes of the server meanwhile.

    python benchmarks/running_jobs.py [--jobs 10000] [--workers 2] [--seconds 120]
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from loguru import logger
from noop_jobs import last_zxid, noop_items
from noop_runner import NoopRunner

from orchestrator.compose import build_queue_set, build_worker, open_session
from orchestrator.config.settings import Settings
from orchestrator.model.states import Queue
from queues import EmbeddedZooKeeper, ServerConfig
from spark_runner.runners.registry import Runners

SPAWN = multiprocessing.get_context("spawn")
ROOT = "/jobs"
_SETTLE_SECONDS = 40.0  # until the last drivers have started, and handlers have looked at their jobs again


def processor_seconds() -> float:
    """Processor seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_mib() -> float:
    """The resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def work(settings: Settings, begin: Barrier, end: Barrier, report: Any) -> None:
    """One worker: reports its usage between the two barriers."""
    logger.remove()
    hosts = settings.zookeeper_hosts
    with open_session(settings, hosts) as session:
        worker = build_worker(
            session, settings, runners=Runners.of(NoopRunner(hosts, ends=False)), guarded=False
        )
        worker.start()
        begin.wait()
        before = processor_seconds()
        end.wait()
        used, memory = processor_seconds() - before, resident_mib()
        report.put((used, memory, len(worker.dispatcher.in_flight)))


def measure(jobs: int, workers: int, seconds: float) -> dict[str, float]:
    """Start jobs until all run, let them run, and count."""
    report = SPAWN.Queue()
    begin, end = SPAWN.Barrier(workers + 1), SPAWN.Barrier(workers + 1)
    slots = -(-jobs // workers)
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedZooKeeper(ServerConfig(Path(directory) / "zookeeper", long_run=True)) as server,
    ):
        settings = Settings(zookeeper_hosts=server.hosts, root=ROOT, state_dir=Path(directory), slots=slots)
        with open_session(settings, server.hosts) as session:
            queue_set = build_queue_set(session, settings, owner="benchmark")
            queue_set.ensure_pool()
            processes = [
                SPAWN.Process(target=work, args=(settings, begin, end, report)) for _ in range(workers)
            ]
            for process in processes:
                process.start()
            queue_set.put_many(Queue.ACCEPT, noop_items(jobs), max_wait=60)
            while queue_set.count(Queue.RUNNING) < jobs:
                time.sleep(0.5)
            time.sleep(_SETTLE_SECONDS)
            begin.wait()
            before = last_zxid(server.hosts)
            time.sleep(seconds)
            written = last_zxid(server.hosts) - before
            end.wait()
            results = [report.get() for _ in processes]
            for process in processes:
                process.join()
    return {
        "jobs": sum(held for _, _, held in results),
        "processor_share": max(used for used, _, _ in results) / seconds,
        "resident_mib": max(memory for _, memory, _ in results),
        "transactions_per_second": written / seconds,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()
    logger.remove()
    print(json.dumps(measure(arguments.jobs, arguments.workers, arguments.seconds)))


if __name__ == "__main__":
    main()
