"""Reads of several threads go together in one request, and no thread waits for the trouble of another."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import pytest

from queues.session import joint_reads
from queues.session.joint_reads import JointReads
from tests.waiting import wait_until

_SOON_S = 20
_FAR = time.monotonic() + 1e6


class _Turn:
    """A lock that is taken, as the one of a read that waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def acquire(self, timeout: float = -1) -> bool:
        return self._lock.acquire(timeout=timeout)

    def release(self) -> None:
        self._lock.release()


class Server:
    """Answers each path with its name in upper case, as long as it is open; keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.is_open = threading.Event()
        self.error: BaseException | None = None  # of the next request
        self.refused = ""  # a path

    def send(self, paths: Sequence[str], _deadline: float) -> list[str]:
        """The answer to one request."""
        self.requests.append(list(paths))
        assert self.is_open.wait(_SOON_S)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        if self.refused in paths:
            raise ConnectionError
        return [path.upper() for path in paths]


@contextmanager
def in_flight(server: Server, reads: JointReads) -> Iterator[Callable[..., Future[Sequence[str] | None]]]:
    """A request is in flight; yields a function that reads on another thread and waits until it queues."""
    with ThreadPoolExecutor(20) as pool:

        def read(*paths: str, deadline: float = _FAR) -> Future[Sequence[str] | None]:
            before = reads.waiting()
            future = pool.submit(reads.read, paths, deadline)
            wait_until(lambda: reads.waiting() > before or future.done(), _SOON_S, "it waits")
            return future

        first = pool.submit(reads.read, ["first"], _FAR)
        wait_until(lambda: len(server.requests) == 1, _SOON_S, "the first request is in flight")
        try:
            yield read
        finally:
            server.is_open.set()
        first.exception(_SOON_S)


def test_reads_that_come_while_one_is_in_flight_go_together() -> None:
    server = Server()
    with in_flight(server, JointReads(server.send)) as read:
        found = [read("a"), read("b", "c"), read("d")]
    assert [each.result(_SOON_S) for each in found] == [["A"], ["B", "C"], ["D"]]
    assert server.requests == [["first"], ["a", "b", "c", "d"]]


def test_a_request_has_a_hundred_paths_at_most_and_a_larger_read_goes_alone() -> None:
    server = Server()
    reads = JointReads(server.send)
    many = [f"path-{number}" for number in range(60)]
    with in_flight(server, reads) as read:
        found = [read(*many), read(*many)]
    assert [len(each.result(_SOON_S) or ()) for each in found] == [60, 60]
    assert [len(request) for request in server.requests] == [1, 60, 60]
    assert reads.read([*many, *many], _FAR) is None
    assert reads.read([], _FAR) is None


@pytest.mark.parametrize("error", [ConnectionError("lost"), KeyboardInterrupt()])
def test_after_a_failed_request_each_reads_alone_and_the_next_ones_go_on(error: BaseException) -> None:
    server = Server()
    reads = JointReads(server.send)
    with in_flight(server, reads) as read:
        server.error = error  # of the first request
        found = read("a")
    assert found.result(_SOON_S) == ["A"]
    server.error = ConnectionError("lost again")
    assert reads.read(["b"], _FAR) is None
    assert reads.read(["c"], _FAR) == ["C"]


def test_all_of_a_failed_request_read_alone() -> None:
    server = Server()
    reads = JointReads(server.send)
    with in_flight(server, reads) as read:
        found = [read("a"), read("b")]
        server.refused = "a"
    assert [each.result(_SOON_S) for each in found] == [None, None]
    assert reads.read(["c"], _FAR) == ["C"]


@pytest.mark.parametrize("when", ["it waits", "its turn has come"])
def test_ctrl_c_in_a_thread_that_waits_holds_up_no_other(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    reads = JointReads(server.send)

    class Interrupted(_Turn):
        def acquire(self, timeout: float = -1) -> bool:
            if when == "its turn has come":
                assert super().acquire(timeout=timeout)
            raise KeyboardInterrupt

    with in_flight(server, reads) as read:
        kind = joint_reads._Read  # noqa: SLF001 - its lock is what Ctrl-C interrupts
        monkeypatch.setattr(joint_reads, "_Read", lambda paths: kind(paths, turn=cast("Any", Interrupted())))
        broken = read("broken")
        monkeypatch.undo()
        if when == "it waits":
            assert isinstance(broken.exception(_SOON_S), KeyboardInterrupt)
        found = read("a")
    assert isinstance(broken.exception(_SOON_S), KeyboardInterrupt)
    assert found.result(_SOON_S) == ["A"]
    assert reads.read(["b"], _FAR) == ["B"]
    assert ["broken"] not in server.requests


def test_a_read_whose_deadline_passes_is_not_sent_and_delays_no_other() -> None:
    server = Server()
    with in_flight(server, JointReads(server.send)) as read:
        late = read("late", deadline=time.monotonic())
        assert late.result(_SOON_S) is None
        found = read("a")
    assert found.result(_SOON_S) == ["A"]
    assert server.requests == [["first"], ["a"]]


def test_many_threads_get_their_own_answers() -> None:
    server = Server()
    server.is_open.set()
    reads = JointReads(server.send)
    names = [f"name-{number}" for number in range(2_000)]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda name: reads.read([name], _FAR), names))
    assert found == [[name.upper()] for name in names]
    assert sum(map(len, server.requests)) == len(names)
