"""The cost of ten idle workers: processor time and requests, with seven queues in twenty pools.

Each worker is a process that consumes all queues of all pools, which are empty. Last line: JSON, per worker.

    python benchmarks/queue_idle.py [--seconds 30] [--workers 10]
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

from queues import Done, EmbeddedZooKeeper, HandlerPool, QueueSet, ServerConfig, send_four_letter_word

QUEUES = ["accept", "running", "fail", "success", "kill", "finish", "dead"]
POOLS = 20
ROOT = "/idle"
SPAWN = multiprocessing.get_context("spawn")


def processor_seconds() -> float:
    """Processor seconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def work(hosts: str, begin: Barrier, end: Barrier, report: Any) -> None:
    """One worker: reports the processor time between the two barriers."""
    with (
        QueueSet.connect(hosts, ROOT, QUEUES) as queues,
        HandlerPool(queues, QUEUES[:-1], lambda _claim: Done(), pools=None),
    ):
        begin.wait()
        before = processor_seconds()
        end.wait()
        report.put(processor_seconds() - before)


def requests_received(hosts: str) -> int:
    """Number of requests that the server has received, pings included."""
    lines = send_four_letter_word(hosts, "srvr").splitlines()
    return int(next(line for line in lines if line.startswith("Received:")).split()[1])


def main() -> None:
    """Start a server and the workers, let them idle, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--workers", type=int, default=10)
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedZooKeeper(ServerConfig(Path(folder), owner="benchmark")) as server,
    ):
        with QueueSet.connect(server.hosts, ROOT, QUEUES) as queues:
            for number in range(POOLS):
                queues.ensure_pool(f"pool-{number}")
        count = arguments.workers
        begin, end, report = SPAWN.Barrier(count + 1), SPAWN.Barrier(count + 1), SPAWN.Queue()
        processes = [
            SPAWN.Process(target=work, args=(server.hosts, begin, end, report), daemon=True)
            for _ in range(count)
        ]
        for process in processes:
            process.start()
        time.sleep(15)  # until all have seen each other and rescanned: then they are idle
        begin.wait()
        before, started = requests_received(server.hosts), time.monotonic()
        time.sleep(arguments.seconds)
        seconds = time.monotonic() - started
        received = requests_received(server.hosts) - before
        end.wait()
        cpu = sum(report.get(timeout=60) for _ in processes)
        for process in processes:
            process.join()
    print(
        json.dumps(
            {
                "cpu_percent": round(100 * cpu / seconds / count, 3),
                "requests_per_second": round(received / seconds / count, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
