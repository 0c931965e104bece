"""Further attempts of requests of the HTTP connector: what their time counts, and what a repeat means."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

from queues.embedded.ports import free_ports
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.http import client
from spark_runner.connectors.http.sender import Row
from tests.http_support import ROWS, in_turn, sender
from tests.servers.web import Reply, web_server

ITEM = [Row("/items/7", None, '{"id":7}', "key")]


@dataclass
class Clock:
    """The clock of a client, which is ahead by the waits that it does not make."""

    waits: list[float] = field(default_factory=list)
    before_wait: Callable[[], object] = lambda: None

    def monotonic(self) -> float:
        return time.monotonic() + sum(self.waits)

    def sleep(self, seconds: float) -> None:
        if seconds:
            self.before_wait()
            self.waits.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(client, "time", made)
    return made


@pytest.mark.usefixtures("clock")
def test_waits_for_the_rate_limit_are_not_part_of_the_retry_timeout() -> None:
    with web_server(in_turn(Reply(), Reply(503), Reply(drop=True), Reply())) as server:
        with sender(f"{server.url}/items", tasks="8", rate_limit="2", retry_timeout="3") as found:
            assert found.write(ROWS) == []
        keys = [each.headers["idempotency-key"] for each in server.received]
        assert keys == ["key-0", "key-1", "key-1", "key-1", "key-2", "key-3"]


def test_a_wait_that_a_server_asks_for_and_one_for_the_rate_limit_pass_together(clock: Clock) -> None:
    for asked, most in ((3, 4), (7, 7)):
        clock.waits.clear()
        replies = Reply(429, headers={"Retry-After": str(asked)}), Reply()
        with web_server(in_turn(*replies)) as server:
            with sender(f"{server.url}/items", tasks="8", rate_limit="2") as found:
                assert found.write(ROWS[:1]) == []
            assert len(server.received) == 2
        assert asked - 1 < sum(clock.waits) <= most + 0.01


@pytest.mark.usefixtures("clock")
def test_attempts_of_a_busy_server_end_though_the_rate_limit_is_low() -> None:
    with (
        web_server(lambda _: Reply(503)) as server,
        sender(f"{server.url}/items", tasks="8", rate_limit="2", retry_timeout="3") as found,
        pytest.raises(Unreachable, match="answers 503"),
    ):
        found.write(ROWS)
    assert 2 < len(server.received) < 9


@pytest.mark.parametrize(
    "lost", [Reply(drop=True), Reply(headers={"Content-Length": "9"}, close=True), Reply(504)]
)
@pytest.mark.parametrize("status", [404, 410])
def test_an_item_that_is_missing_after_a_lost_answer_is_deleted(lost: Reply, status: int) -> None:
    with web_server(in_turn(lost, Reply(503), Reply(status))) as server:
        with sender(f"{server.url}/items/{{id}}", method="delete") as found:
            assert found.write(ITEM) == []
            assert found.write(ITEM) == [(f"HTTP {status} {{}}", ITEM[0].row)]
        assert len(server.received) == 4


def test_a_lost_answer_makes_no_other_refusal_a_success() -> None:
    for method, status in (("delete", 409), ("put", 404)):
        with web_server(in_turn(Reply(drop=True), Reply(status))) as server:
            with sender(f"{server.url}/items/{{id}}", method=method) as found:
                row = ITEM[0]._replace(body="{}")
                assert found.write([row]) == [(f"HTTP {status} {{}}", row.row)]
            assert len(server.received) == 2


def test_an_item_that_is_missing_after_a_busy_answer_is_refused() -> None:
    with web_server(in_turn(Reply(503), Reply(404))) as server:
        with sender(f"{server.url}/items/{{id}}", method="delete") as found:
            assert found.write(ITEM) == [("HTTP 404 {}", ITEM[0].row)]
        assert len(server.received) == 2


def test_an_item_that_is_missing_after_a_request_that_was_not_sent_is_refused(clock: Clock) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    with ExitStack() as stack:
        clock.before_wait = lambda: stack.enter_context(web_server(lambda _: Reply(404), port=port))
        with sender(f"http://127.0.0.1:{port}/items/{{id}}", method="delete") as found:
            assert found.write(ITEM) == [("HTTP 404 {}", ITEM[0].row)]
    assert len(clock.waits) == 1


def test_a_wrong_url_of_all_rows_is_an_error_also_after_a_lost_answer() -> None:
    with (
        web_server(in_turn(Reply(drop=True), Reply(404))) as server,
        sender(f"{server.url}/items", method="delete", body="{{}}") as found,
        pytest.raises(ConnectorError, match="refused: 404"),
    ):
        found.write(ROWS)
