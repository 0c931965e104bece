"""The channel between a driver and its tasks, over real connections on loopback."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.client import BadReport, ControlClient, Endpoint, FencedOut
from spark_runner.push.control.messages import MAX_BYTES, Orders
from spark_runner.push.control.server import ControlServer
from spark_runner.push.settings import LaneLimits, Limits
from tests.waiting import wait_until

WAIT_S = 30
TOKEN = "a-token"  # noqa: S105 - of no server but these
JOIN = b'{"type": "join", "token": "a-token", "partition": 0, "attempt": 0, "nonce": "n"}\n'
LEASE_S = 2.0


class Task:
    """A task that does what it is ordered to."""

    def __init__(self, endpoint: Endpoint, partition: int = 0, attempt: int = 0) -> None:
        self.orders = list[Orders]()
        self.until = 0.0
        self.reports = 0
        self.failures = list[BaseException]()
        self.counts: dict[str, Any] = {"in_flight": 0, "read": 0}
        self.client = ControlClient(
            endpoint,
            TaskId(partition, attempt),
            report=self.report,
            follow=self.orders.append,
            extend=self.extend,
            failed=self.failures.append,
        )

    def report(self) -> dict[str, Any]:
        self.reports += 1
        return dict(self.counts)

    def extend(self, until: float) -> None:
        self.until = until

    @property
    def concurrency(self) -> int:
        is_valid = self.orders and time.monotonic() < self.until
        return self.orders[-1].concurrency if is_valid else 0


class Driver:
    """A server of the channel, and its tasks."""

    def __init__(self, stack: contextlib.ExitStack, *, is_exclusive: bool = False) -> None:
        self._stack = stack
        self.server = ControlServer(
            Limits(concurrency=8, rate=100.0),
            host="127.0.0.1",
            token=TOKEN,
            lease=LEASE_S,
            is_exclusive=is_exclusive,
        )
        self.port = self.server.start()
        stack.callback(self.server.close)

    def task(self, partition: int = 0, attempt: int = 0, port: int = 0) -> Task:
        task = Task(Endpoint("127.0.0.1", port or self.port, TOKEN, LEASE_S), partition, attempt)
        self._stack.callback(task.client.close)
        return task


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as found:
        yield found


@pytest.fixture
def driver(stack: contextlib.ExitStack) -> Driver:
    return Driver(stack)


def holds(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, WAIT_S, what)


def test_tasks_share_the_limits_whoever_comes_and_goes(driver: Driver) -> None:
    first = driver.task(0)
    holds(lambda: first.concurrency == 8, "it has all")
    second = driver.task(1)
    holds(lambda: (first.concurrency, second.concurrency) == (4, 4), "each has a half")
    second.client.close()
    holds(lambda: first.concurrency == 8, "it has all again")
    assert first.orders[-1] == Orders(first.orders[-1].version, 8, 100.0, 10_000, 16 * 1024 * 1024)


def test_a_task_confirms_less_once_its_requests_in_flight_are_within(driver: Driver) -> None:
    first = driver.task(0)
    holds(lambda: first.concurrency == 8, "it has all")
    first.counts["in_flight"] = 8
    second = driver.task(1)
    holds(lambda: first.concurrency == 4, "it is to use less")
    assert second.concurrency == 0, "the first one uses all"
    first.counts["in_flight"] = 4
    holds(lambda: second.concurrency == 4, "what is free is used")


def test_limits_pauses_and_rollbacks_reach_all_tasks(driver: Driver) -> None:
    tasks = [driver.task(number) for number in range(4)]
    holds(lambda: all(task.concurrency == 2 for task in tasks), "all have their share")
    driver.server.adjust(Limits(concurrency=16, lanes={"a": LaneLimits(is_paused=True)}))
    holds(lambda: all(task.concurrency == 4 for task in tasks), "all have their new share")
    driver.server.roll_back()
    holds(lambda: all(task.orders[-1].rollbacks == 1 for task in tasks), "all are rolled back")
    assert all(task.orders[-1].paused == ["a"] for task in tasks)
    driver.server.adjust(Limits(is_suspended=True))
    holds(lambda: all(task.concurrency == 0 for task in tasks), "none delivers")


def test_counts_reach_the_driver_and_the_last_ones_too(driver: Driver) -> None:
    task = driver.task(3)
    task.counts["read"] = 7
    holds(
        lambda: [each.counts.get("read") for each in driver.server.tasks().values()] == [7], "they are there"
    )
    task.counts["read"] = 9
    task.client.close()
    assert driver.server.tasks() == {}
    assert [(of, counts["read"]) for of, counts in driver.server.take_ended()] == [(TaskId(3, 0), 9)]
    assert driver.server.take_ended() == []


def test_a_task_whose_connection_breaks_keeps_its_orders_and_comes_back(
    driver: Driver, stack: contextlib.ExitStack
) -> None:
    proxy = stack.enter_context(Proxy.to(driver.port))
    task = driver.task(port=proxy.port)
    holds(lambda: task.concurrency == 8, "it has orders")
    known = len(task.orders)
    proxy.cut()
    holds(lambda: len(task.orders) > known, "it has orders again")
    assert task.concurrency == 8
    assert not task.failures


def test_a_task_without_contact_for_its_lease_delivers_nothing_and_its_share_is_free(
    driver: Driver, stack: contextlib.ExitStack
) -> None:
    proxy = stack.enter_context(Proxy.to(driver.port))
    lost, other = driver.task(0, port=proxy.port), driver.task(1)
    holds(lambda: (lost.concurrency, other.concurrency) == (4, 4), "each has a half")
    proxy.is_open = False
    proxy.cut()
    holds(lambda: other.concurrency == 8, "the other one has all")
    assert lost.concurrency == 0, "it may use nothing before another one uses its share"
    proxy.is_open = True
    holds(lambda: (lost.concurrency, other.concurrency) == (4, 4), "it has a share again")


def test_a_later_attempt_takes_the_place_of_the_one_before(stack: contextlib.ExitStack) -> None:
    driver = Driver(stack, is_exclusive=True)
    first = driver.task(0, attempt=0)
    holds(lambda: first.concurrency == 8, "it has all")
    again = driver.task(0, attempt=1)
    holds(lambda: again.concurrency == 8, "the later one has all")
    assert first.concurrency == 0
    late = driver.task(0, attempt=0)
    holds(lambda: late.failures, "it is refused")
    assert isinstance(late.failures[0], FencedOut)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(
            b'{"type": "join", "token": "wrong", "partition": 0, "attempt": 0, "nonce": "n"}\n',
            id="wrong token",
        ),
        pytest.param(b'{"type": "report", "number": 1, "version": 0}\n', id="no join"),
        pytest.param(JOIN.replace(b"0", b"-1"), id="below zero"),
        pytest.param(JOIN.replace(b"0", b"true"), id="no number"),
        pytest.param(b'{"type": "join", "token": "a-token"}\n', id="fields lack"),
        pytest.param(JOIN.replace(b"}", b', "more": 1}'), id="unknown field"),
        pytest.param(b"[" * 10_000 + b"\n", id="deep"),
        pytest.param(b"\xff\x00\n", id="no text"),
        pytest.param(b"x" * (2 * MAX_BYTES), id="no line"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_who_does_not_join_properly_gets_no_answer_and_does_no_harm(driver: Driver, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", driver.port), WAIT_S) as sock:
        sock.settimeout(WAIT_S)
        with contextlib.suppress(ConnectionError):  # it closes while we send
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            assert sock.recv(1) == b""
    assert driver.server.tasks() == {}
    task = driver.task()
    holds(lambda: task.concurrency == 8, "a task has its orders")


def test_a_report_of_a_task_is_checked(driver: Driver) -> None:
    with socket.create_connection(("127.0.0.1", driver.port), WAIT_S) as sock:
        sock.settimeout(WAIT_S)
        stream = sock.makefile("rb")
        sock.sendall(JOIN)
        assert [json.loads(stream.readline())["concurrency"] for _ in range(2)] == [0, 8]
        sock.sendall(b'{"type": "report", "number": 1, "version": 1e999}\n')
        assert stream.readline() == b""


def test_a_closed_server_leaves_no_thread_and_a_task_ends_without_it(driver: Driver) -> None:
    task = driver.task()
    holds(lambda: task.concurrency == 8, "it has orders")
    driver.server.close()
    task.client.close()
    assert "push-control" not in {thread.name for thread in threading.enumerate()}


def test_a_client_that_does_not_read_is_dropped_and_does_not_hold_up_the_end(
    stack: contextlib.ExitStack,
) -> None:
    driver = Driver(stack)
    with socket.create_connection(("127.0.0.1", driver.port), WAIT_S) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(0.5)
        report = b'{"type": "report", "number": 1, "version": 0}\n' * 200
        with contextlib.suppress(OSError):
            sock.sendall(JOIN)
            while True:
                sock.sendall(report)
        driver.server.close()


def test_a_task_without_a_share_keeps_its_connection(driver: Driver, stack: contextlib.ExitStack) -> None:
    proxy = stack.enter_context(Proxy.to(driver.port))
    driver.server.adjust(Limits(is_suspended=True))
    task = driver.task(port=proxy.port)
    holds(lambda: task.reports > 7, "it reports for longer than it waits for an answer")
    assert proxy.connections == 1
    assert task.concurrency == 0


def test_an_error_of_a_task_is_reported_and_ends_its_lease(driver: Driver) -> None:
    task = driver.task()
    holds(lambda: task.concurrency == 8, "it has orders")
    task.counts["more"] = "x" * MAX_BYTES
    holds(lambda: task.failures, "it fails")
    assert isinstance(task.failures[0], BadReport)
    assert task.concurrency == 0


def test_a_wrong_token_is_tried_with_pauses(driver: Driver, stack: contextlib.ExitStack) -> None:
    proxy = stack.enter_context(Proxy.to(driver.port))
    task = Task(Endpoint("127.0.0.1", proxy.port, "wrong", LEASE_S))
    stack.callback(task.client.close)
    holds(lambda: proxy.connections >= 4, "it tries")
    began = time.monotonic()
    holds(lambda: proxy.connections >= 7, "it tries further")
    assert time.monotonic() - began > 1.0


class Proxy:
    """Passes connections on, until they are cut; while it is not open, it accepts and is silent."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.is_open = True
        self._sockets = list[socket.socket]()
        self.connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @classmethod
    @contextlib.contextmanager
    def to(cls, port: int) -> Iterator["Proxy"]:
        proxy = cls(port)
        try:
            yield proxy
        finally:
            proxy._server.shutdown(socket.SHUT_RDWR)
            proxy._server.close()
            proxy._thread.join()
            proxy.cut()

    def cut(self) -> None:
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                mine, _ = self._server.accept()
                self._sockets.append(mine)
                self.connections += 1
                if self.is_open:
                    other = socket.create_connection(("127.0.0.1", self._to))
                    self._sockets.append(other)
                    for pair in ((mine, other), (other, mine)):
                        threading.Thread(target=self._pass, args=pair, daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
