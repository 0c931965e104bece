"""The wait of a new due item in a folder of 200,000 items that are not due, while the folder changes.

One consumer; another process constantly puts delayed items, as into finish of an orchestrator. Last
line: JSON, seconds from the put to the hand-out, and the consumer's processor seconds in all.

    python benchmarks/queue_large_folder.py [--items 200000] [--tries 10]
"""

import argparse
import json
import logging
import multiprocessing
import queue
import statistics
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path

from queues import Consumer, EmbeddedZooKeeper, NewItem, QueueSet, ServerConfig

QUEUES = ["accept", "dead"]
ROOT = "/large"
SPAWN = multiprocessing.get_context("spawn")
DAY_MS = 86_400_000
CHUNK = 5_000
HEAP_MB = 1_500  # 200,000 items of two nodes each


def disturb(hosts: str, stop: Event) -> None:
    """Put ten delayed items per second: the folder changes constantly."""
    with QueueSet.connect(hosts, ROOT, QUEUES) as queues:
        number = 0
        while not stop.wait(0.1):
            queues.put("accept", f"other-{number}", {}, delay_ms=DAY_MS)
            number += 1


def measure(hosts: str, queues: QueueSet, tries: int) -> tuple[list[float], float]:
    """Waits of some items in seconds, and processor seconds of this process meanwhile."""
    handed_out = queue.SimpleQueue[float]()
    with QueueSet.connect(hosts, ROOT, QUEUES) as worker:
        consumer = Consumer(
            worker,
            ["accept"],
            hand_out=lambda _claim: handed_out.put(time.monotonic()),
            capacity=lambda _queue: 100,
        )
        consumer.start()
        queues.put("accept", "first", {})
        handed_out.get(timeout=120)
        cpu, waited = time.process_time(), []
        for number in range(tries):
            time.sleep(1.0)
            put_at = time.monotonic()
            queues.put("accept", f"new-{number}", {})
            waited.append(handed_out.get(timeout=120) - put_at)
        cpu = time.process_time() - cpu
        consumer.stop()
    return waited, cpu


def main() -> None:
    """Fill a folder, then put due items."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=200_000)
    parser.add_argument("--tries", type=int, default=10)
    arguments = parser.parse_args()
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedZooKeeper(ServerConfig(Path(folder), owner="benchmark", heap_mb=HEAP_MB)) as server,
        QueueSet.connect(server.hosts, ROOT, QUEUES) as queues,
    ):
        queues.ensure_pool()
        queues.pools.change("default", bound=1_000_000)
        for start in range(0, arguments.items, CHUNK):
            items = [NewItem({}, f"{n:036}", delay_ms=DAY_MS) for n in range(start, start + CHUNK)]
            queues.put_many("accept", items)
        stop = SPAWN.Event()
        other = SPAWN.Process(target=disturb, args=(server.hosts, stop), daemon=True)
        other.start()
        waited, cpu = measure(server.hosts, queues, arguments.tries)
        stop.set()
        other.join()
    figures = {"median": statistics.median(waited), "most": max(waited), "cpu_seconds": cpu}
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()
