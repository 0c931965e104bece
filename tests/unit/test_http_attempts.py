"""Further attempts of requests of the HTTP connector: what their time counts, and what a repeat means."""

import json
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from queues.embedded.ports import free_ports
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.http.bodies import Row
from spark_runner.push.engine import Engine
from spark_runner.push.errors import Refused
from tests.http_support import ROWS, in_turn, sender
from tests.push_support import WAIT_S
from tests.servers.web import Reply, web_server

ITEM = [Row("/items/7", None, '{"id":7}', "key")]


def test_waits_for_the_rate_limit_are_not_part_of_the_retry_timeout() -> None:
    with web_server(in_turn(Reply(), Reply(503), Reply(drop=True), Reply())) as server:
        with sender(f"{server.url}/items", rate_limit="1", retry_timeout="2") as found:
            assert found.write(ROWS) == []
        keys = [each.headers["idempotency-key"] for each in server.received]
        assert sorted({*keys}) == ["key-0", "key-1", "key-2", "key-3"]
        assert len(keys) == 6


def test_no_row_is_sent_before_the_time_that_a_busy_server_asks_for() -> None:
    with web_server(in_turn(Reply(429, headers={"Retry-After": "1"}), Reply())) as server:
        with sender(f"{server.url}/items", concurrency="8") as found:
            assert found.write(ROWS) == []
        first, *others = sorted(server.received, key=lambda each: each.at)
        late = [each for each in others if each.at - first.at >= 0.95]
        assert late, "the first one comes again"
        assert all(each in late or each.at - first.at < 0.5 for each in others)


def test_a_row_waits_no_longer_for_its_failed_request_than_the_retry_timeout() -> None:
    with (
        web_server(in_turn(Reply(500, headers={"Retry-After": "3000"}))) as server,
        sender(f"{server.url}/items", retry_timeout="0.3") as found,
        pytest.raises(Unreachable, match=r"took no record for 0\.3 s: .* answers 500"),
    ):
        found.write(ROWS[:1])


@pytest.mark.parametrize("text", ["a", "ä", "中"])
def test_a_request_has_as_many_bytes_of_rows_as_allowed_in_any_script(text: str) -> None:
    body = f'"{text * (996 // len(text.encode()))}"'
    with web_server() as server, sender(f"{server.url}/items", batch_size="99", batch_bytes="9990") as found:
        assert found.write([Row("/items", body, body, f"key-{n}") for n in range(40)]) == []
    sizes = [sum(len(row.encode()) + 2 for row in json.loads(each.body)) for each in server.received]
    assert sizes == [size for _ in range(4) for size in [10 * len(body.encode())]]


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


def test_an_item_that_is_missing_because_a_rollback_deletes_it_again_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    has_rolled_back, roll_back = threading.Event(), Engine.roll_back

    def observed(engine: Engine, lane: str | None = None) -> None:
        roll_back(engine, lane)
        has_rolled_back.set()

    def reply(_: Any) -> Reply:
        if has_rolled_back.is_set():
            return Reply(404)
        found.driver.roll_back()
        assert has_rolled_back.wait(WAIT_S)
        return Reply()

    monkeypatch.setattr(Engine, "roll_back", observed)
    with web_server(reply) as server, sender(f"{server.url}/items/{{id}}", method="delete") as found:
        assert found.write(ITEM) == []
        assert len(server.received) == 2


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


def test_an_item_that_is_missing_after_a_request_that_was_not_sent_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    refused = list[Exception]()
    with ExitStack() as stack:

        class Recorded(Refused):
            """The server starts after the first request that it did not get."""

            def __init__(self, *given: Any) -> None:
                super().__init__(*given)
                if not refused:
                    stack.enter_context(web_server(lambda _: Reply(404), port=port))
                refused.append(self)

        monkeypatch.setattr("spark_runner.connectors.http.sender.Refused", Recorded)
        with sender(f"http://127.0.0.1:{port}/items/{{id}}", method="delete") as found:
            assert found.write(ITEM) == [("HTTP 404 {}", ITEM[0].row)]
    assert len(refused) == 1


def test_a_wrong_url_of_all_rows_is_an_error_also_after_a_lost_answer() -> None:
    with (
        web_server(in_turn(Reply(drop=True), Reply(404))) as server,
        sender(f"{server.url}/items", method="delete", body="{{}}") as found,
        pytest.raises(ConnectorError, match="refused: 404"),
    ):
        found.write(ROWS)


def test_a_row_that_fails_while_others_are_taken_is_refused_with_its_attempts() -> None:
    def reply(received: Any) -> Reply:
        return Reply(500, b"broken") if received.body == b'{"n":2}' else Reply(delay_s=0.02)

    rows = [*ROWS, *(Row("/items", f'{{"n":{n}}}', "", f"key-{n}") for n in range(10, 110))]
    with (
        web_server(reply) as server,
        sender(f"{server.url}/items", concurrency="2", retry_attempts="3") as found,
    ):
        ((reason, row),) = found.write(rows)
    words = f"{server.url} answers 500 broken"
    assert (reason, row) == (f"3 attempts: {words}; {words}; {words}", '{"n":2}')
