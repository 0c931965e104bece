"""Queue moves per second: Curator's DistributedIdQueue with a lock path against ours, in one run.

Both do the same work on the same embedded ZooKeeper with fsync: consume an item under a lock and move it to
the next queue. Curator puts it into the next queue and then deletes it; ours is one atomic move. Rounds
alternate, and the medians count. Ours is also measured at a constant depth: moved items stay in the queues.
Last line: JSON, moves (and puts) per second.

    python benchmarks/queue_moves.py [--rounds 5] [--items 5000]
"""

import argparse
import json
import multiprocessing
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import curator_peer
from kazoo.client import KazooClient

from queues import (
    Claim,
    EmbeddedZooKeeper,
    Event,
    EventKind,
    HandlerPool,
    Move,
    NewItem,
    QueueSet,
    ServerConfig,
)

QUEUES = ["todo", "next"]
PAYLOAD = {"text": "x" * 189}  # 200 bytes of JSON
WORKERS = (1, 2, 4)
DEPTHS = {1_000: 1, 10_000: 1, 200_000: 20}  # items: pools
DEPTH_MOVES = 10_000
HELD = 400
THREADS = {"curator": 10, "curator_100_threads": curator_peer.THREADS}
"""The number that a user would start with, and the number at which Curator was fastest."""
PUT_WARM_UPS = {"curator": 0, "curator_warm": 5_000}
"""Puts of a JVM that has just started, as our Python has, and of a JVM that has compiled all code."""
LIMIT_SECONDS = 300.0
HEAP_MB = 2_048
HEAP = (f"-Xms{HEAP_MB}m",)  # growing the heap under 200,000 items causes a pause of half a second
WARM_UPS, WARM_UP_ITEMS = 4, 5_000  # until the server's compilers have done most of their work

Figures = dict[str, dict[str, list[float]]]
"""By measurement: one figure per round."""

SPAWN = multiprocessing.get_context("spawn")


@contextmanager
def queue_set(hosts: str, root: str) -> Iterator[QueueSet]:
    """Queues on their own session."""
    with QueueSet.connect(hosts, root, QUEUES) as queues:
        yield queues


def items(count: int, prefix: str, pool: str = "default") -> list[NewItem]:
    """New items with unique ids."""
    return [NewItem(PAYLOAD, id=f"{prefix}-{number}", pool=pool) for number in range(count)]


def enqueue(hosts: str, root: str, count: int) -> float:
    """Items per second by `put_many`, after a warm-up."""
    with queue_set(hosts, root) as queues:
        queues.ensure_pool()
        queues.pools.change("default", bound=1_000_000, paused=True)
        queues.put_many("next", items(500, "warm"))
        for item in queues.tokens("next"):
            queues.remove(item.id)
        made = items(count, "job")
        started = time.perf_counter()
        queues.put_many("todo", made)
        return count / (time.perf_counter() - started)


def consume(hosts: str, root: str, ready: Barrier, done: Any) -> None:
    """One worker process: moves items until `done` is set."""
    with (
        queue_set(hosts, root) as queues,
        HandlerPool(queues, ["todo"], lambda _claim: Move("next"), threads=4, held=HELD, pools=None),
    ):
        ready.wait()
        done.wait()


def moves(hosts: str, root: str, count: int, workers: int) -> float:
    """Moves per second from the moment the paused pool is resumed to the last item in the next queue."""
    ready, done = SPAWN.Barrier(workers + 1), SPAWN.Event()
    processes = [
        SPAWN.Process(target=consume, args=(hosts, root, ready, done), daemon=True) for _ in range(workers)
    ]
    for process in processes:
        process.start()
    with queue_set(hosts, root) as queues:
        ready.wait()
        started = time.perf_counter()
        queues.pools.change("default", paused=False)
        wait_for(lambda: queues.count("next") >= count)
        seconds = time.perf_counter() - started
        assert queues.count("todo") == 0  # noqa: S101 - else the result would be wrong
    done.set()
    for process in processes:
        process.join()
    return count / seconds


def circulate(hosts: str, root: str, ready: Barrier, done: Any, report: Any) -> None:
    """One worker that moves items from each queue into the other, so that no queue becomes empty."""
    counted = [0]

    def handle(claim: Claim) -> Move:
        # Due now: behind all others, as after a put.
        return Move("next" if claim.queue == "todo" else "todo", delay_ms=1)

    def count(event: Event) -> None:
        counted[0] += event.kind is EventKind.MOVE  # called by one thread, that of the batcher

    with (
        queue_set(hosts, root) as queues,
        HandlerPool(queues, QUEUES, handle, threads=4, held=HELD, pools=None),
    ):
        queues.listen(count)
        ready.wait()
        wait_for(lambda: counted[0] >= HELD)  # its lists are read
        started, before = time.perf_counter(), counted[0]
        wait_for(lambda: counted[0] >= before + DEPTH_MOVES)
        seconds = time.perf_counter() - started
        moved = counted[0] - before
        done.wait()
    report.put((moved / seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def depth(hosts: str, root: str, depth_items: int, pools: int) -> tuple[float, float]:
    """Moves per second, and the consumer's peak memory in MiB, with this many items in the queues."""
    with queue_set(hosts, root) as queues:
        for number in range(pools):
            pool = f"pool-{number}"
            queues.ensure_pool(pool)
            queues.pools.change(pool, bound=1_000_000)
            queues.put_many("todo", items(depth_items // pools, pool, pool))
    ready, done, report = SPAWN.Barrier(2), SPAWN.Event(), SPAWN.Queue()
    process = SPAWN.Process(target=circulate, args=(hosts, root, ready, done, report), daemon=True)
    process.start()
    ready.wait()
    done.set()
    rate, memory = report.get(timeout=LIMIT_SECONDS)
    process.join()
    return rate, memory


def single_put(hosts: str, root: str, count: int = 300) -> float:
    """Median of one synchronous put over the median of one raw kazoo multi with as many creates."""
    client = KazooClient(hosts)
    client.start()
    client.ensure_path(f"{root}/raw")
    ours, raw = list[float](), list[float]()
    with queue_set(hosts, root) as queues:
        for number in range(2 * 256):  # all folders exist
            queues.put("todo", f"first-{number}", PAYLOAD)
        for number in range(count):
            started = time.perf_counter()
            queues.put("todo", f"single-{number}", PAYLOAD)
            between = time.perf_counter()
            multi = client.transaction()
            multi.create(f"{root}/raw/{number}", json.dumps(PAYLOAD).encode())
            multi.create(f"{root}/raw/{number}-token", b"")
            assert not any(isinstance(result, Exception) for result in multi.commit())  # noqa: S101 - as above
            ours.append(between - started)
            raw.append(time.perf_counter() - between)
    client.stop()
    client.close()
    return statistics.median(ours) / statistics.median(raw)


def wait_for(condition: Any) -> None:
    """Wait until the condition holds; fails after some minutes."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            message = "the queues make no progress"
            raise TimeoutError(message)
        time.sleep(0.005)


@contextmanager
def server() -> Iterator[str]:
    """A new, warm server for each round: the memory of an earlier one has no effect."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        config = ServerConfig(Path(folder), heap_mb=HEAP_MB, long_run=True, jvm_options=HEAP)
        own = stack.enter_context(EmbeddedZooKeeper(config))
        for number in range(WARM_UPS):
            enqueue(own.hosts, f"/warm-{number}", WARM_UP_ITEMS)
            moves(own.hosts, f"/warm-{number}", WARM_UP_ITEMS, 1)
        yield own.hosts


def compare(hosts: str, number: int, count: int, found: Figures, puts: Figures) -> None:
    """One round: Curator with few and many threads, and ours, in turn with each number of workers."""
    for workers in WORKERS:
        key = str(workers)
        for (peer, threads), (putter, warm_up) in zip(THREADS.items(), PUT_WARM_UPS.items(), strict=True):
            root = f"/{peer}-{workers}"
            puts[putter].setdefault("all", []).append(curator_peer.enqueue(hosts, root, count, warm_up))
            rate = curator_peer.moves(hosts, root, count, workers, threads)
            found[peer].setdefault(key, []).append(rate)
            print(f"round {number}, {workers} workers: {peer} {rate:,.0f} moves/s", flush=True)
        root = f"/ours-{workers}"
        puts["ours"].setdefault("all", []).append(enqueue(hosts, root, count))
        ours = moves(hosts, root, count, workers)
        found["ours"].setdefault(key, []).append(ours)
        print(f"round {number}, {workers} workers: ours {ours:,.0f} moves/s", flush=True)


def medians(figures: Figures) -> dict[str, dict[str, int]]:
    """The median of each list."""
    return {
        who: {key: round(statistics.median(rates)) for key, rates in by_key.items()}
        for who, by_key in figures.items()
    }


def ratios(ours: dict[str, int], theirs: dict[str, int]) -> dict[str, float]:
    """Ratio of the rates, by number of workers."""
    return {key: round(ours[key] / theirs[key], 2) for key in ours}


def measure(rounds: int, count: int) -> dict[str, Any]:
    """All figures, with alternating rounds of both."""
    found: Figures = {who: {} for who in (*THREADS, "ours")}
    puts: Figures = {who: {} for who in (*PUT_WARM_UPS, "ours")}
    depths: Figures = {"rate": {}, "memory": {}}
    for number in range(1, rounds + 1):
        with server() as hosts:
            compare(hosts, number, count, found, puts)
        for depth_items, pools in DEPTHS.items():
            with server() as hosts:
                rate, memory = depth(hosts, "/depth", depth_items, pools)
            depths["rate"].setdefault(str(depth_items), []).append(rate)
            depths["memory"].setdefault(str(depth_items), []).append(memory)
            print(f"round {number}, {depth_items:,} deep: {rate:,.0f} moves/s, {memory:.0f} MiB", flush=True)
    with server() as hosts:
        single = single_put(hosts, "/single")
    rates, enqueued, deep = medians(found), medians(puts), medians(depths)
    by_who = {who: enqueued[who]["all"] for who in enqueued}
    return {
        **rates,
        **{f"ratio{peer.removeprefix('curator')}": ratios(rates["ours"], rates[peer]) for peer in THREADS},
        "enqueue": by_who,
        "enqueue_ratio": {who: round(by_who["ours"] / by_who[who], 2) for who in PUT_WARM_UPS},
        "single_put_ratio": round(single, 2),
        "depth": deep["rate"],
        "memory_mib": deep["memory"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=sys.modules[__name__].__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--items", type=int, default=5_000)
    arguments = parser.parse_args()
    print(json.dumps(measure(arguments.rounds, arguments.items)))


if __name__ == "__main__":
    main()
