"""The task that serves rows, whose limits a real driver sets."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.client import Endpoint, FencedOut
from spark_runner.push.control.server import ControlServer
from spark_runner.push.errors import TargetDown
from spark_runner.push.poll.settings import PollSettings
from spark_runner.push.poll.task import CannotListen, PollTask
from spark_runner.push.settings import LaneLimits, Limits
from tests.poll_support import TOKEN, WAIT_S, Client, numbers, rows
from tests.waiting import wait_until

LEASE_S = 40.0


class Run:
    """A task in a thread, and its driver."""

    def __init__(self, limits: Limits) -> None:
        self.server = ControlServer(
            limits,
            host="127.0.0.1",
            token="t",  # noqa: S106 - of this server alone
            lease=LEASE_S,
            is_exclusive=True,
        )
        self.endpoint = Endpoint("127.0.0.1", self.server.start(), "t", LEASE_S)
        self.results, self.threads = list[int | BaseException](), list[threading.Thread]()

    def start(self, portions: "Iterator[Sequence[bytes]]", attempt: int = 0, **settings: Any) -> None:
        task = PollTask(PollSettings(TOKEN, **settings), self.endpoint)

        def run() -> None:
            try:
                self.results.append(task.run(portions, TaskId(0, attempt)))
            except Exception as error:  # noqa: BLE001 - the test looks at it
                self.results.append(error)

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()

    def report(self, attempt: int = 0) -> dict[str, Any]:
        found = self.server.tasks().get(TaskId(0, attempt))
        return dict(found.counts) if found else {}

    def client(self, attempt: int = 0) -> Client:
        return Client(wait_until(lambda: self.report(attempt).get("address"), WAIT_S, "it has an address"))

    def result(self) -> int | BaseException:
        self.threads[0].join(WAIT_S)
        return self.results[0]


@contextmanager
def driver(limits: Limits | None = None) -> Iterator[Run]:
    made = Run(limits or Limits())
    try:
        yield made
    finally:
        made.server.close()
        for thread in made.threads:
            thread.join(WAIT_S)


def portions(count: int, each: int = 10) -> Iterator[list[bytes]]:
    found = rows(count)
    return (found[start : start + each] for start in range(0, count, each))


def test_all_rows_are_served_and_counted() -> None:
    with driver() as run:
        run.start(portions(95), page_records=30)
        client = run.client()
        assert numbers(client.all_rows()) == [*range(95)]
        assert run.result() == 95
        ((_, counts),) = run.server.take_ended()
        assert counts["lanes"][""]["delivered"] == 95
        assert counts["buffered"] == 0


def test_without_rows_a_client_gets_the_end() -> None:
    with driver() as run:
        run.start(portions(0))
        assert run.client().ask(wait=30).document["end"] is True
        assert run.result() == 0


def test_a_client_that_never_acknowledges_stops_the_producer_and_an_operator_gives_it_room() -> None:
    produced = list[int]()

    def counted() -> Iterator[list[bytes]]:
        for found in portions(10_000):
            produced.append(len(found))
            yield found

    with driver(Limits(buffer_records=50)) as run:
        run.start(counted())
        client = run.client()
        wait_until(lambda: run.report()["is_full"], WAIT_S, "the buffer is full")
        for _ in range(20):
            assert len(client.ask().rows) == 50
        assert sum(produced) == 60, "one portion waits for room"
        run.server.adjust(Limits(buffer_records=100))
        wait_until(lambda: run.report()["buffered"] == 100, WAIT_S, "there is room for more")


def test_an_operator_suspends_it_and_goes_on() -> None:
    with driver() as run:
        run.start(portions(20))
        client = run.client()
        wait_until(lambda: client.ask().rows, WAIT_S, "rows")
        run.server.adjust(Limits(is_suspended=True))
        wait_until(lambda: not client.ask().rows, WAIT_S, "it is suspended")
        run.server.adjust(Limits())
        assert numbers(client.all_rows()) == [*range(20)]


def test_a_driver_that_ends_lets_waiting_clients_know() -> None:
    with driver() as run:
        gate, replies = threading.Event(), list[Any]()

        def slow() -> Iterator[list[bytes]]:
            yield rows(5)
            assert gate.wait(WAIT_S)
            yield rows(5)

        run.start(slow())
        client = run.client()
        cursor = wait_until(lambda: (found := client.ask(wait=1)).rows and found.next, WAIT_S, "rows")
        waits = threading.Thread(target=lambda: replies.append(client.ask(after=cursor, wait=60)))
        waits.start()
        wait_until(lambda: run.report()["buffered"] == 0, WAIT_S, "it is there")
        run.server.dismiss()
        waits.join(WAIT_S)
        assert [(each.status, each.error) for each in replies] == [(500, "failed")]
        gate.set()
        assert isinstance(run.result(), FencedOut)


def test_a_source_that_fails_lets_waiting_clients_know_and_is_the_error_of_the_task() -> None:
    gate, replies = threading.Event(), list[str]()

    def broken() -> Iterator[list[bytes]]:
        yield rows(5)
        assert gate.wait(WAIT_S)
        raise ValueError("of the source")

    with driver() as run:
        run.start(broken())
        client = run.client()
        cursor = wait_until(lambda: (found := client.ask(wait=1)).rows and found.next, WAIT_S, "rows")
        waits = threading.Thread(target=lambda: replies.append(client.ask(after=cursor, wait=60).error))
        waits.start()
        wait_until(lambda: run.report()["buffered"] == 0, WAIT_S, "it is there")
        gate.set()
        waits.join(WAIT_S)
        assert replies == ["failed"]
        assert isinstance(run.result(), ValueError)


def test_a_further_attempt_serves_all_rows_again_with_cursors_of_its_own() -> None:
    with driver() as run:
        run.start(portions(20), client_timeout=0.5)
        client = run.client()
        cursor = wait_until(lambda: (found := client.ask(limit=5)).rows and found.next, WAIT_S, "rows")
        client.ask(after=cursor)
        assert isinstance(run.result(), TargetDown)
        run.start(portions(20), attempt=1)
        again = run.client(1)
        reply = again.ask(after=cursor)
        assert (reply.status, reply.error) == (410, "cursor_gone")
        assert numbers(again.all_rows()) == [*range(20)]


def test_a_port_that_is_taken_is_named() -> None:
    with driver() as run:
        run.start(portions(1), port=run.endpoint.port)
        error = run.result()
        assert isinstance(error, CannotListen)
        assert f"no client can be served at 127.0.0.1:{run.endpoint.port}" in str(error)


def test_no_report_has_the_token() -> None:
    with driver() as run:
        run.start(portions(1))
        run.client()
        assert TOKEN not in str(run.report())
        assert TOKEN not in repr(PollTask(PollSettings(TOKEN, chain="a-key"), run.endpoint))
        assert "a-key" not in repr(PollSettings(TOKEN, chain="a-key"))


@pytest.mark.parametrize("lane", ["", "other"])
def test_pausing_the_lane_without_a_name_pauses_all(lane: str) -> None:
    with driver() as run:
        run.start(portions(5))
        client = run.client()
        wait_until(lambda: client.ask().rows, WAIT_S, "rows")
        run.server.adjust(Limits(lanes={lane: LaneLimits(is_paused=True)}))
        if lane:
            assert client.ask(wait=1).rows
        else:
            wait_until(lambda: not client.ask().rows, WAIT_S, "it is paused")
