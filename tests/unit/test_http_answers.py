"""Answers to requests of the HTTP connector: interim ones, slow ones, and what follows the end of one."""

import ssl
from pathlib import Path

import pytest

from spark_runner.connectors.errors import Unreachable
from tests.http_support import ROWS, dripping_server, sender
from tests.servers.secured import Certificates
from tests.servers.web import Received, Reply, web_server

HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
INTERIM = [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n", HINTS, 3 * HINTS]


def server_side(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server)
    return context


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


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize(
    ("begin", "drip"),
    [
        (b"HTTP/1.1 200 ", b"O"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 102 Processing\r\nX: ", b"x"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: x\r\n"),
    ],
    ids=["status", "headers", "interim", "headers-of-interim", "body", "size-of-chunk", "trailers"],
)
def test_an_answer_that_comes_byte_by_byte_ends_with_the_timeout(
    begin: bytes, drip: bytes, secure: bool, certificates: Certificates
) -> None:
    options = {"timeout": "0.3", "retry_timeout": "0"}
    if secure:
        options["ssl_ca"] = Path(certificates.ca).read_text("utf-8")
    with (
        dripping_server(begin, drip, server_side(certificates) if secure else None) as url,
        sender(url, **options) as found,
        pytest.raises(Unreachable, match=r"does not answer: .*timed out"),
    ):
        found.write(ROWS[:1])


def test_bytes_after_the_end_of_an_answer_are_no_answer_to_the_next_request(
    certificates: Certificates,
) -> None:
    more = b"okHTTP/1.1 422 No\r\nContent-Length: 0\r\n\r\n"
    ca = Path(certificates.ca).read_text("utf-8")
    with web_server(
        lambda _: Reply(201, more, {"Content-Length": "2"}), context=server_side(certificates)
    ) as server:
        with sender(f"{server.url}/items", ssl_ca=ca) as found:
            assert found.write(ROWS) == []
        assert len(server.received) == len(ROWS)
