"""Curator's DistributedIdQueue, measured in JVMs of its own: the peer of queue_moves.py.

The JVMs run `curator/CuratorMoves.java` with the Curator that PySpark ships. They have Java's defaults (both
compilers, its choice of a collector), and their warm-up is not measured.
"""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from kazoo.client import KazooClient

from queues import find_jars, find_java

PROGRAM = Path(__file__).parent / "curator" / "CuratorMoves.java"

SILENT = ("-Dlog4j2.level=OFF", "-Dlog4j2.statusLoggerLevel=OFF")

POLL_SECONDS = 0.005
"""A thousandth of the time of 5,000 moves; reading a znode's count costs the server next to nothing."""

STANDSTILL_SECONDS = 60.0
"""A session ends within 40 s of its client; without progress by then there never is any."""

THREADS = 100
"""Curator's best of 10, 50, 100 and 200 for 1, 2 and 4 workers: 10 give half of it. Each waits for the server
five times per move, and concurrent requests share an fsync."""

ENQUEUE_LIMIT_SECONDS = 300.0
ANSWER_LIMIT_SECONDS = 60.0
STOP_SECONDS = 10.0


class CuratorFailed(Exception):
    """Curator lost, doubled or left items, or one of its JVMs died; the result of this run would be wrong."""


class Worker:
    """One JVM that moves items; it ends when its stdin is closed, thus with this process too."""

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._errors
        )

    def fire(self) -> None:
        """Start the moves."""
        assert self._process.stdin is not None  # noqa: S101 - for mypy: Popen opened a pipe
        self._process.stdin.write(b"\n")

    def check(self) -> None:
        """Raise CuratorFailed when it has died."""
        code = self._process.poll()
        if code is not None:
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace")
            raise CuratorFailed(f"a worker ended with exit code {code}: {said}")

    def stop(self) -> None:
        """Close its stdin, kill it if that does not end it, and wait for its end."""
        assert self._process.stdin is not None  # noqa: S101 - as above
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def enqueue(hosts: str, root: str, items: int, warm_up: int, payload_bytes: int = 200) -> float:
    """Fill `root/q1` by asynchronous puts; items per second until the last acknowledgement.

    `warm_up` puts before are not measured: after 5,000 Java's compilers have done their work.
    """
    done = subprocess.run(
        _command("enqueue", hosts, root, items, payload_bytes, warm_up),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ENQUEUE_LIMIT_SECONDS,
        check=False,
    )
    if done.returncode:
        raise CuratorFailed(f"enqueue ended with exit code {done.returncode}: {done.stderr}")
    with _connected(hosts) as client:
        found = _count(client, f"{root}/q1")
    if found != items:
        raise CuratorFailed(f"{found} items are in {root}/q1 after {items} puts")
    return float(done.stdout)


def moves(hosts: str, root: str, items: int, workers: int, threads: int = THREADS) -> float:
    """Moves per second from the start signal until `root/q1` is empty, with this many worker processes.

    `enqueue` filled the queue before. Raises CuratorFailed without progress, and when `root/q2` does not have
    each item once at the end.
    """
    first, second, ready = f"{root}/q1", f"{root}/q2", f"{root}/ready"
    with ExitStack() as stack:
        client = stack.enter_context(_connected(hosts))
        expected = _ids(client, first)
        if expected.total() != items:
            raise CuratorFailed(f"{expected.total()} items are in {first}, {items} should be moved")
        running = list[Worker]()
        for _ in range(workers):
            running.append(Worker(_command("work", hosts, root, threads)))
            stack.callback(running[-1].stop)
        _wait_for_none(lambda: workers - _count(client, ready), running, "workers not ready")
        started = time.perf_counter()
        for worker in running:
            worker.fire()
        # An item is put into `q2` before it is deleted from `q1`: when `q1` is empty, all moves are complete.
        _wait_for_none(lambda: _count(client, first), running, f"items in {first}")
        seconds = time.perf_counter() - started
        moved = _ids(client, second)
    if moved != expected:
        lost, more = (expected - moved).total(), (moved - expected).total()
        raise CuratorFailed(f"of {items} items {lost} are not in {second}, and {more} should not be there")
    return items / seconds


def _command(mode: str, *arguments: str | int) -> list[str]:
    java, jars = find_java(), find_jars()
    return [str(java.path), *SILENT, "-cp", str(jars / "*"), str(PROGRAM), mode, *map(str, arguments)]


def _wait_for_none(left: Callable[[], int], workers: Sequence[Worker], what: str) -> None:
    """Return when nothing is left; raise CuratorFailed without progress, or when a worker has died."""
    fewest, since = left(), time.monotonic()
    while now := left():
        if now < fewest:
            fewest, since = now, time.monotonic()
        elif time.monotonic() - since > STANDSTILL_SECONDS:
            raise CuratorFailed(f"{now} {what}, and no progress for {STANDSTILL_SECONDS:g} s")
        for worker in workers:
            worker.check()
        time.sleep(POLL_SECONDS)


def _count(client: KazooClient, path: str) -> int:
    stat = client.exists_async(path).get(timeout=ANSWER_LIMIT_SECONDS)  # the plain call has no timeout
    return 0 if stat is None else int(stat.numChildren)


def _ids(client: KazooClient, path: str) -> Counter[str]:
    """Count of each id in a queue of Curator, whose nodes are `queue-|ID|SEQUENCE`."""
    names: list[str] = client.get_children(path)
    return Counter(name.split("|")[1] for name in names)


@contextmanager
def _connected(hosts: str) -> Iterator[KazooClient]:
    client = KazooClient(hosts)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()
