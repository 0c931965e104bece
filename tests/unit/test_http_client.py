"""Requests of the HTTP connector: further attempts, rates, logins, TLS, and rows that a server refuses."""

import base64
import math
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from queues.embedded.ports import free_ports
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.http import connection
from spark_runner.connectors.http.answers import Answer
from spark_runner.connectors.http.bodies import Row
from spark_runner.connectors.http.client import Client, Lost
from tests.http_support import ROWS, in_turn, plan, sender
from tests.servers.secured import Certificates
from tests.servers.web import Received, Reply, mutual_tls, web_server
from tests.waiting import wait_until


def test_rows_are_requests_of_one_connection() -> None:
    with web_server() as server:
        with sender(f"{server.url}/items", **{"header.X-Tenant": "ä"}) as found:
            assert found.write(ROWS) == []
        assert [(each.method, each.body.decode()) for each in server.received] == [
            ("POST", str(row.body)) for row in ROWS
        ]
        headers = server.received[0].headers
        assert (headers["content-type"], headers["idempotency-key"]) == ("application/json", "key-0")
        assert headers["x-tenant"].encode("latin-1").decode() == "ä"
        assert server.connections == 1


CUT = {"Content-Length": "9999"}


@pytest.mark.parametrize(
    "lost", [Reply(drop=True), Reply(503), Reply(507), Reply(headers=CUT), Reply(headers=CUT, close=True)]
)
def test_a_request_without_an_answer_is_sent_again_with_its_key(lost: Reply) -> None:
    with web_server(in_turn(lost, Reply())) as server:
        with sender(f"{server.url}/items", timeout="0.3") as found:
            assert found.write(ROWS[:2]) == []
        keys = sorted(each.headers["idempotency-key"] for each in server.received)
        assert keys == ["key-0", "key-0", "key-1"]


def test_a_connection_that_the_server_has_closed_between_requests_is_opened_again() -> None:
    with (
        web_server(lambda _: Reply(close=True)) as server,
        closing(Client(plan(f"{server.url}/items"))) as client,
    ):
        client.request("POST", "/items", b"1")
        wait_until(lambda: not client.is_idle(), 10, "the server has closed it")
        client.request("POST", "/items", b"2")
        assert [each.body for each in server.received] == [b"1", b"2"]
        assert server.connections == 2


def test_all_addresses_of_a_server_together_have_the_time_to_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        fills = stack.enter_context(socket.create_connection(full.getsockname()))
        assert fills.fileno() >= 0
        host, port = full.getsockname()
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: found * 8)
        options = plan(f"http://{host}:{port}", connect_timeout="0.5")
        client = stack.enter_context(closing(Client(options)))
        began = time.monotonic()
        with pytest.raises(Unreachable, match="timed out"):
            client.connect()
        assert 0.3 < time.monotonic() - began < 2.0


def test_nothing_is_sent_when_the_address_was_found_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve, now = socket.getaddrinfo, [0.0]

    def slow(*given: Any, **more: Any) -> Any:
        now[0] += 6.0
        return resolve(*given, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with web_server() as server:
        with closing(Client(plan(server.url, connect_timeout="5"))) as client:
            with pytest.raises(Lost, match="timed out") as lost:
                client.request("POST", "/items", b"1")
            assert not lost.value.was_sent
        assert server.received == []


def test_attempts_end_after_the_retry_timeout() -> None:
    with web_server(lambda _: Reply(503, b"no  disk\n left")) as server:
        with (
            sender(f"{server.url}/items", retry_timeout="0.3") as found,
            pytest.raises(Unreachable, match=f"{server.url} answers 503 no disk left"),
        ):
            found.write(ROWS)
        assert len(server.received) > 1
    with (
        sender(f"{server.url}/items", retry_timeout="0.1") as found,
        pytest.raises(Unreachable, match=f"{server.url} does not answer: .*refused"),
    ):
        found.write(ROWS)


@pytest.mark.parametrize("as_date", [False, True])
def test_a_server_says_when_a_request_may_come_again(as_date: bool) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
    with web_server(
        in_turn(Reply(429, headers={"Retry-After": date if as_date else "1"}), Reply())
    ) as server:
        with sender(f"{server.url}/items") as found:
            assert found.write(ROWS[:1]) == []
        first, second = server.received
        assert second.at - first.at >= (0.5 if as_date else 1)  # a date has whole seconds


def test_a_wait_beyond_the_retry_timeout_is_not_begun() -> None:
    with (
        web_server(lambda _: Reply(429, headers={"Retry-After": "3000"})) as server,
        sender(f"{server.url}/items") as found,
        pytest.raises(Unreachable, match="answers 429"),
    ):
        found.write(ROWS)


def test_requests_keep_the_rate_limit() -> None:
    with web_server() as server:
        with sender(f"{server.url}/items", rate_limit="5", concurrency="8") as found:
            found.write(ROWS)
        took = server.received[-1].at - server.received[0].at
        assert took >= 0.95 * (len(ROWS) - 1) / 5


@pytest.mark.parametrize("value", ["Thu, 01 Jan 2026 00:00:00 +99999999", "9" * 400, "soon", ""])
def test_a_time_to_wait_that_is_none_is_ignored(value: str) -> None:
    headers = Message()
    headers["Retry-After"] = value
    assert Answer(503, headers, b"", is_whole=True).retry_after() in {0.0, math.inf}


def test_a_slow_answer_is_a_lost_one() -> None:
    with (
        web_server(lambda _: Reply(delay_s=1)) as server,
        sender(f"{server.url}/items", timeout="0.1", retry_timeout="0") as found,
        pytest.raises(Unreachable, match="does not answer: timed out"),
    ):
        found.write(ROWS)


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_a_refused_batch_is_divided_to_find_the_rows_that_are_refused(form: str) -> None:
    def picky(received: Received) -> Reply:
        return Reply(422, b'{"error": "n is  2"}') if b'"n":2' in received.body else Reply()

    with web_server(picky) as server:
        with sender(f"{server.url}/items", batch_size="3", batch_format=form) as found:
            assert found.write(ROWS) == [('HTTP 422 {"error": "n is 2"}', '{"n":2}')]
        bodies = [each.body.decode() for each in server.received]
        rows = '{"n":2}', '{"n":3}'
        whole = '[{"n":0},{"n":1},{"n":2}]' if form == "json" else '{"n":0}\n{"n":1}\n{"n":2}\n'
        assert bodies[0] == whole
        assert {f"[{row}]" if form == "json" else f"{row}\n" for row in rows} <= {*bodies}
        keys = [each.headers["idempotency-key"] for each in server.received]
        assert len(keys) == len(set(keys)) == 6
        assert "key-3" in keys


def test_rows_that_cannot_be_sent_are_refused_with_their_reason() -> None:
    rows: Sequence[Row] = [
        Row(None, "{}", "a", None),
        Row("/items/..", "{}", "b", None),
        Row("/items/1", None, "c", None),
    ]
    with web_server() as server, sender(f"{server.url}/items/{{id}}") as found:
        assert found.write(rows) == [
            ("a column of its URL is NULL or empty", "a"),
            ("its URL has a segment '.' or '..'", "b"),
            ("a column of its body is NULL", "c"),
        ]
        assert server.received == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "check the login: 'token'"),
        (403, "check the login: 'token'"),
        (302, "answers 302, a redirect, which is not followed"),
        (404, "refused: 404"),
        (405, "refused: 405"),
    ],
)
def test_an_answer_that_holds_for_all_rows_ends_the_write(status: int, words: str) -> None:
    reply = Reply(status, headers={"Location": "http://127.0.0.1/elsewhere"})
    with web_server(lambda _: reply) as server:
        with sender(f"{server.url}/items") as found, pytest.raises(ConnectorError, match=words):
            found.write(ROWS)
        assert len(server.received) == 1


def test_a_missing_item_is_a_row_that_is_refused_and_statuses_can_be_chosen() -> None:
    rows = [Row("/items/7", None, '{"id":7}', None)]
    with web_server(lambda _: Reply(404, b"")) as server:
        with sender(f"{server.url}/items/{{id}}", method="delete") as found:
            assert found.write(rows) == [("HTTP 404", '{"id":7}')]
        with sender(f"{server.url}/items/{{id}}", method="delete", success_status="200-299,404") as found:
            assert found.write(rows) == []
        assert [(each.method, each.path, each.body) for each in server.received] == [
            ("DELETE", "/items/7", b"")
        ] * 2
        assert "content-type" not in server.received[0].headers


def test_logins_are_sent_and_masked_in_what_a_server_repeats() -> None:
    def echo(received: Received) -> Reply:
        return Reply(409, received.headers["authorization"].encode())

    basic = base64.b64encode(b"ada:open sesame").decode()
    with web_server(echo) as server:
        for options, sent in (
            ({"token": "sesame-token\n"}, "Bearer sesame-token"),
            ({"username": "ada", "password": "open sesame"}, f"Basic {basic}"),
        ):
            with sender(f"{server.url}/items", **options) as found:
                ((reason, _),) = found.write(ROWS[:1])
            assert server.received[-1].headers["authorization"] == sent
            assert reason == f"HTTP 409 {sent.partition(' ')[0]} ***"
    with pytest.raises(ConnectorError, match=r"option 'headers.X-Key' has a character") as caught:
        Client(plan(server.url, **{"header.X-Key": "open\r\nsesame"}))
    assert "sesame" not in str(caught.value)


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    with web_server(lambda _: Reply(422, b"x" * 1_000_000)) as server:
        with sender(f"{server.url}/items") as found:
            ((reason, _), *_) = found.write(ROWS[:2])
        assert len(reason) < 300
        assert len(server.received) == 2


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"])
def test_no_table_reaches_the_metadata_of_a_cloud(host: str) -> None:
    with closing(Client(plan(f"http://{host}/"))) as client, pytest.raises(ConnectorError, match="metadata"):
        client.connect()


def test_a_certificate_of_the_client_is_sent_and_that_of_the_server_checked(
    certificates: Certificates,
) -> None:
    texts = {
        name: Path(certificates.ca).with_name(name).read_text("utf-8")
        for name in (*("ca.pem", "other.pem", "client.pem", "client.key"),)
    }
    own = {"ssl_certificate": texts["client.pem"], "ssl_key": texts["client.key"]}
    with web_server(context=mutual_tls(certificates)) as server:
        with sender(f"{server.url}/items", ssl_ca=texts["ca.pem"], **own) as found:
            assert found.write(ROWS) == []
        assert server.connections == 1
        server.reply = in_turn(Reply(drop=True), Reply())
        with sender(f"{server.url}/items", ssl_ca=texts["ca.pem"], **own) as found:
            assert found.write(ROWS[:1]) == []
        with (
            sender(f"{server.url}/items", ssl_ca=texts["ca.pem"]) as found,
            pytest.raises(ConnectorError, match=r"refuses this client: .*check 'ssl_certificate'"),
        ):
            found.write(ROWS)
        with (
            sender(f"{server.url}/items", ssl_ca=texts["other.pem"], **own) as found,
            pytest.raises(ConnectorError, match=r"is not trusted: .*check option 'ssl_ca'"),
        ):
            found.write(ROWS)
        assert len(server.received) == len(ROWS) + 2
    with pytest.raises(ConnectorError, match="are no certificate and key as PEM that fit together"):
        Client(plan(server.url, ssl_certificate=texts["other.pem"], ssl_key=texts["client.key"]))
    with pytest.raises(ConnectorError, match="option 'ssl_ca' has no certificates as PEM"):
        Client(plan(server.url, ssl_ca="no certificate"))


def test_a_connection_opens_or_fails_without_a_request(certificates: Certificates) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    with (
        closing(Client(plan(f"http://127.0.0.1:{port}"))) as client,
        pytest.raises(Unreachable, match=f"http://127.0.0.1:{port} does not answer"),
    ):
        client.connect()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server)
    with web_server(context=context) as server:
        ca = Path(certificates.ca).read_text("utf-8")
        with closing(Client(plan(server.url, ssl_ca=ca))) as client:
            client.connect()
        assert server.received == []
