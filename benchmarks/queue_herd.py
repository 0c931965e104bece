"""The cost of a herd: 200 consumers, each with its own session, on 5,000 items.

Counts the claims that were refused because another consumer was faster, and those that were granted. Last
line: JSON.

    python benchmarks/queue_herd.py [--consumers 200] [--items 5000] [--processes 4]
"""

import argparse
import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, ClassVar

from queues import (
    Candidate,
    Claim,
    Claimer,
    Done,
    EmbeddedZooKeeper,
    HandlerPool,
    NewItem,
    QueueError,
    QueueSet,
    ServerConfig,
)

QUEUES = ["todo"]
ROOT = "/herd"
SPAWN = multiprocessing.get_context("spawn")


class CountingClaimer(Claimer):
    """Counts the results of claims."""

    counts: ClassVar[Counter[str]] = Counter()

    def claim(self, candidates: Sequence[Candidate]) -> list[Claim | QueueError]:
        """Claim, and count the results."""
        outcomes = super().claim(candidates)
        self.counts.update("granted" if isinstance(outcome, Claim) else "refused" for outcome in outcomes)
        return outcomes


def work(hosts: str, consumers: int, begin: Barrier, done: Any, report: Any) -> None:
    """Some of the consumers, in threads of one process."""
    sets = [QueueSet.connect(hosts, ROOT, QUEUES) for _ in range(consumers)]
    pools = []
    for queues in sets:
        queues.claimer.__class__ = CountingClaimer
        pools.append(HandlerPool(queues, QUEUES, lambda _claim: Done(), threads=1, held=4).start())
    begin.wait()
    done.wait()
    for pool in pools:
        pool.stop()
    for queues in sets:
        queues.close()
    report.put(dict(CountingClaimer.counts))


def main() -> None:
    """Start a server and the herd, run it, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--consumers", type=int, default=200)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--processes", type=int, default=4)
    arguments = parser.parse_args()
    count = arguments.processes
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedZooKeeper(ServerConfig(Path(folder), owner="benchmark")) as server,
        QueueSet.connect(server.hosts, ROOT, QUEUES) as queues,
    ):
        queues.ensure_pool()
        queues.pools.change("default", paused=True)
        queues.put_many("todo", [NewItem({}, id=f"job-{number}") for number in range(arguments.items)])
        begin, done, report = SPAWN.Barrier(count + 1), SPAWN.Event(), SPAWN.Queue()
        each = arguments.consumers // count
        processes = [
            SPAWN.Process(target=work, args=(server.hosts, each, begin, done, report), daemon=True)
            for _ in range(count)
        ]
        for process in processes:
            process.start()
        begin.wait()
        started = time.monotonic()
        queues.pools.change("default", paused=False)
        while queues.count("todo"):
            time.sleep(0.05)
        seconds = time.monotonic() - started
        done.set()
        counts: ClassVar[Counter[str]] = Counter()
        for _ in processes:
            counts.update(report.get(timeout=120))
        for process in processes:
            process.join()
    print(
        json.dumps(
            {
                "consumers": each * count,
                "items": arguments.items,
                "granted": counts["granted"],
                "refused": counts["refused"],
                "refused_per_granted": round(counts["refused"] / max(1, counts["granted"]), 3),
                "seconds": round(seconds, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
