"""Answers to requests of the HTTP connector."""

import pytest

from spark_runner.connectors.errors import Unreachable
from tests.http_support import ROWS, sender
from tests.servers.web import Received, Reply, web_server

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
INTERIM = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n", HINTS, 3 * HINTS]


@pytest.mark.parametrize("interim", INTERIM)
def test_the_answer_to_a_row_is_the_one_after_interim_answers(interim: bytes) -> None:
    def picky(received: Received) -> Reply:
        status = 422 if received.body == b'{"n":1}' else 201
        return Reply(status, b"", interim=b"" if received.body == b'{"n":2}' else interim)

    with web_server(picky) as server:
        with sender(f"{server.url}/items") as found:
            assert found.write(ROWS) == [("HTTP 422", '{"n":1}')]
        assert len(server.received) == len(ROWS)
        assert server.connections == 1


@pytest.mark.parametrize("interim", INTERIM[:3])
def test_interim_answers_without_end_are_a_lost_answer(interim: bytes) -> None:
    with (
        web_server(lambda _: Reply(interim=interim * 1000)) as server,
        sender(f"{server.url}/items", retry_timeout="0") as found,
        pytest.raises(Unreachable, match="does not answer: more than 100 interim answers"),
    ):
        found.write(ROWS)


def test_a_switch_of_protocols_is_no_answer() -> None:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
    with (
        web_server(lambda _: Reply(interim=switch)) as server,
        sender(f"{server.url}/items", retry_timeout="0") as found,
        pytest.raises(Unreachable, match="does not answer: it switches to another protocol"),
    ):
        found.write(ROWS)
