"""The rate of jobs through all states, and the writes of ZooKeeper per job.

Two worker processes with drivers that do nothing (see noop_runner), an embedded server with fsync, and in the
same run the asynchronous creates of bare kazoo on that server. Last line: JSON.

    python benchmarks/lifecycle.py [--jobs 2000] [--workers 2] [--rounds 3]
"""

import argparse
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from loguru import logger
from noop_jobs import last_zxid, noop_items
from noop_runner import NoopRunner

from orchestrator.compose import build_queue_set, build_worker, open_session
from orchestrator.config.settings import Settings
from orchestrator.model.states import Queue
from queues import EmbeddedZooKeeper, ServerConfig
from spark_runner.runners.registry import Runners

SPAWN = multiprocessing.get_context("spawn")
PROBE_CREATES = 20_000
SLOTS = 500


def settings_for(hosts: str, root: str, state_dir: Path) -> Settings:
    """Settings of a worker of this benchmark."""
    return Settings(zookeeper_hosts=hosts, root=root, state_dir=state_dir, slots=SLOTS)


def work(settings: Settings, ready: Any, stop: Event, report: Any) -> None:
    """One worker; reports the processor seconds after its start, and its peak memory (KiB)."""
    logger.remove()
    hosts = settings.zookeeper_hosts
    with open_session(settings, hosts) as session:
        worker = build_worker(session, settings, runners=Runners.of(NoopRunner(hosts)), guarded=False)
        worker.start()
        started = time.process_time()
        ready.release()
        stop.wait()
        worker.drain()
        report.put((time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


def bare_creates(hosts: str, folder: str) -> float:
    """Asynchronous creates per second of bare kazoo."""
    client = KazooClient(hosts)
    client.start()
    client.ensure_path(folder)
    started = time.monotonic()
    sent = [client.create_async(f"{folder}/{number:06}", b"x" * 100) for number in range(PROBE_CREATES)]
    for created in sent:
        created.get(60)
    seconds = time.monotonic() - started
    client.stop()
    client.close()
    return PROBE_CREATES / seconds


def run_jobs(hosts: str, root: str, state_dir: Path, jobs: int, workers: int) -> dict[str, float]:
    """Jobs per second from the first submission to the last end."""
    settings = settings_for(hosts, root, state_dir)
    ready, stop, report = SPAWN.Semaphore(0), SPAWN.Event(), SPAWN.Queue()
    started = [SPAWN.Process(target=work, args=(settings, ready, stop, report)) for _ in range(workers)]
    with open_session(settings, hosts) as session:
        queue_set = build_queue_set(session, settings, owner="benchmark")
        queue_set.ensure_pool()
        for process in started:
            process.start()
        for _ in started:
            ready.acquire()
        items = noop_items(jobs)
        written, begin = last_zxid(hosts), time.monotonic()
        queue_set.put_many(Queue.ACCEPT, items)
        while queue_set.count(Queue.FINISH) < jobs:
            time.sleep(0.02)
        seconds = time.monotonic() - begin
        written = last_zxid(hosts) - written
        stop.set()
        usage = [report.get() for _ in started]
        for process in started:
            process.join()
    return {
        "jobs_per_second": jobs / seconds,
        "writes_per_job": written / jobs,
        "worker_processor_ms_per_job": 1000 * sum(used for used, _ in usage) / jobs,
        "worker_mib": max(memory for _, memory in usage) / 1024,
    }


def measure(jobs: int, workers: int, count: int) -> dict[str, float]:
    """Alternate bare kazoo and jobs, and compare the medians of so many rounds."""
    bare, rounds = [], []
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedZooKeeper(ServerConfig(Path(directory) / "zookeeper", long_run=True)) as server,
    ):
        bare_creates(server.hosts, "/warm")
        for number in range(count):
            bare.append(bare_creates(server.hosts, f"/bare-{number}"))
            print(f"bare kazoo: {bare[-1]:,.0f} asynchronous creates/s")
            result = run_jobs(server.hosts, f"/jobs-{number}", Path(directory), jobs, workers)
            rounds.append(result)
            print(", ".join(f"{name} {value:,.1f}" for name, value in result.items()))
    medians = {name: statistics.median(result[name] for result in rounds) for name in rounds[0]}
    creates = statistics.median(bare)
    ratio = medians["jobs_per_second"] / creates
    return {**medians, "bare_creates_per_second": creates, "ratio": ratio}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    logger.remove()
    print(json.dumps(measure(arguments.jobs, arguments.workers, arguments.rounds)))


if __name__ == "__main__":
    main()
