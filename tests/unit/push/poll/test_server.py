"""The server of rows, over real connections."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from http.client import RemoteDisconnected
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from spark_runner.push.errors import SettingError
from spark_runner.push.poll import server as module
from spark_runner.push.poll.buffer import PollBuffer
from spark_runner.push.poll.server import PollServer
from spark_runner.push.poll.settings import PollSettings
from spark_runner.push.settings import Limits
from tests.poll_support import TOKEN, WAIT_S, Client, numbers, rows, served
from tests.servers.secured import Certificates
from tests.waiting import wait_until

HEAD = f"GET /rows HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()


@pytest.fixture
def buffer_and_url() -> Iterator[tuple[PollBuffer, str]]:
    with served() as found:
        found[0].put(rows(10))
        yield found


@pytest.fixture
def buffer(buffer_and_url: tuple[PollBuffer, str]) -> PollBuffer:
    return buffer_and_url[0]


@pytest.fixture
def client(buffer_and_url: tuple[PollBuffer, str]) -> Client:
    return Client(buffer_and_url[1])


def connected(url: str) -> socket.socket:
    made = socket.create_connection((urlsplit(url).hostname, urlsplit(url).port or 0), WAIT_S)
    made.settimeout(WAIT_S)
    return made


def answer_to(url: str, request: bytes) -> bytes:
    """All that the server answers before it closes the connection."""
    with connected(url) as made:
        made.sendall(request)
        made.shutdown(socket.SHUT_WR)
        found = b""
        while data := made.recv(65_536):
            found += data
        return found


def ended(future: "Future[int]") -> int:
    return future.result(WAIT_S)


def test_a_client_gets_all_rows_page_by_page_and_then_the_end(buffer: PollBuffer, client: Client) -> None:
    with ThreadPoolExecutor() as pool:
        done = pool.submit(buffer.finish)
        first = client.ask(limit=4)
        assert (first.status, numbers(first.rows), first.document["end"]) == (200, [0, 1, 2, 3], False)
        assert first.headers["Content-Type"] == "application/json"
        assert first.headers["Cache-Control"] == "no-store"
        assert numbers(client.ask(limit=4).rows) == [0, 1, 2, 3]
        second = client.ask(after=first.next)
        assert numbers(second.rows) == [4, 5, 6, 7, 8, 9]
        assert not done.done()
        last = client.ask(after=second.next)
        assert last.document == {"rows": [], "next": second.next, "end": True}
        assert ended(done) == 10


def test_a_client_waits_for_rows_no_longer_than_it_says(buffer: PollBuffer, client: Client) -> None:
    cursor = client.ask().next
    assert client.ask(after=cursor).document == {"rows": [], "next": cursor, "end": False}
    assert client.ask(after=cursor, wait="0.01").rows == []
    with ThreadPoolExecutor() as pool:
        waits = [pool.submit(client.ask, after=cursor, wait=60) for _ in range(3)]
        wait_until(lambda: buffer.report()["buffered"] == 0, WAIT_S, "they are there")
        buffer.put(rows(3))
        assert [numbers(each.result(WAIT_S).rows) for each in waits] == [[0, 1, 2]] * 3


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], TOKEN.upper(), "\u00e4" * 20])
def test_without_the_token_nothing_is_there(client: Client, buffer: PollBuffer, token: str) -> None:
    other = Client(client.url, token)
    for path in ("/rows", "/other"):
        reply = other.ask(path=path)
        assert (reply.status, reply.error) == (401, "unauthorized")
        assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert buffer.report()["lanes"][""]["requests"] == 0


@pytest.mark.parametrize(
    "headers",
    [
        "",
        f"Authorization: Basic {TOKEN}\r\n",
        f"Authorization: {TOKEN}\r\n",
        f"Authorization: Bearer wrong\r\nAuthorization: Bearer {TOKEN}\r\n",
        f"Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}\r\n",
        f"X-Authorization: Bearer {TOKEN}\r\n",
    ],
)
def test_a_login_in_another_form_is_none(client: Client, headers: str) -> None:
    found = answer_to(client.url, f"GET /rows HTTP/1.1\r\n{headers}\r\n".encode())
    assert found.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/", 404, "not_found"),
        ("/rows/", 404, "not_found"),
        ("/rows/../rows", 404, "not_found"),
        ("//rows", 404, "not_found"),
        ("/rows?after=1", 400, "bad_cursor"),
        ("/rows?after=", 400, "bad_cursor"),
        ("/rows?after=" + "a" * 10_000, 400, "bad_cursor"),
        ("/rows?after=%00%ff", 400, "bad_cursor"),
        ("/rows?after=" + "0" * 16 + "-0", 410, "cursor_gone"),
        ("/rows?limit=0", 400, "bad_request"),
        ("/rows?limit=-1", 400, "bad_request"),
        ("/rows?limit=1.5", 400, "bad_request"),
        ("/rows?limit=nan", 400, "bad_request"),
        ("/rows?limit=%D9%A3", 400, "bad_request"),
        ("/rows?wait=61", 400, "bad_request"),
        ("/rows?wait=-1", 400, "bad_request"),
        ("/rows?wait=1e1", 400, "bad_request"),
        ("/rows?wait=" + "9" * 400, 400, "bad_request"),
        ("/rows?wait=1&wait=2", 400, "bad_request"),
        ("/rows?wiat=1", 400, "bad_request"),
        ("/rows?" + "a=1&" * 1000, 400, "bad_request"),
    ],
)
def test_a_wrong_request_is_answered_with_its_reason(
    client: Client, buffer: PollBuffer, path: str, status: int, code: str
) -> None:
    reply = client.ask(path=path)
    assert (reply.status, reply.error) == (status, code)
    assert buffer.report()["lanes"][""]["requests"] == 0


def test_a_cursor_of_an_earlier_attempt_says_what_to_do(client: Client) -> None:
    words = client.ask(after="0123456789abcdef-5").document["error"]["message"]
    assert "another attempt of the job, and this one serves all rows again; ask without `after`" in words


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
def test_another_method_is_refused(client: Client, method: str) -> None:
    reply = client.ask(method)
    assert (reply.status, reply.error, reply.headers["Allow"]) == (405, "bad_method", "GET, HEAD")


def test_head_acknowledges_nothing(client: Client, buffer: PollBuffer) -> None:
    cursor = client.ask().next
    assert client.ask("HEAD", after=cursor).status == 200
    assert buffer.report()["buffered"] == 10
    buffer.fail(RuntimeError("no"))
    assert client.ask("HEAD").status == 500


@pytest.mark.parametrize(
    ("request_", "status"),
    [(HEAD, 200), (HEAD.replace(b"/rows", b"/other"), 404), (b"GET /rows HTTP/1.1\r\n\r\n", 401)],
)
def test_an_answer_to_head_has_no_body(client: Client, request_: bytes, status: int) -> None:
    head, _, body = answer_to(client.url, request_.replace(b"GET", b"HEAD")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert body == b""


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (HEAD.replace(b"/rows", b"http://[/rows"), 400),
        (b"GET /rows\r\n\r\n", 400),
        (b"GET /rows HTTP/2.0\r\n\r\n", 400),
        (HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\nhello"), 400),
        (HEAD.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        (HEAD.replace(b"\r\n\r\n", b"\r\n" + b"X: y\r\n" * 150 + b"\r\n"), 431),
        (HEAD.replace(b"\r\n\r\n", b"\r\nX: " + b"y" * 20_000 + b"\r\n\r\n"), 431),
        (HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello"), 400),
        (HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length : 5\r\n\r\nhello"), 400),
        (HEAD.replace(b"\r\n\r\n", b"\r\nno header\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
        (HEAD.replace(b"\r\n\r\n", b"\r\nX: y\n\n" + HEAD), 400),
        (HEAD.replace(b"\r\n\r\n", b"\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n"), 400),
        (HEAD.replace(b"\r\n\r\n", b"\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n"), 400),
        (HEAD.replace(b"\r\n\r\n", b"\r\nX: \0\r\n\r\n"), 400),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_answered_and_ends_the_connection(
    client: Client, request_: bytes, status: int
) -> None:
    found = answer_to(client.url, request_)
    assert found.startswith(b"HTTP/1.1 %d " % status)
    assert found.count(b"HTTP/1.1 ") == 1
    assert client.ask().status == 200


def test_a_connection_has_several_requests_one_after_the_other(client: Client) -> None:
    found = answer_to(client.url, HEAD * 3 + HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + HEAD)
    assert found.count(b"HTTP/1.1 200 OK") == 4, "one of HTTP/1.0 is the last"


def test_strangers_that_hold_connections_do_not_keep_a_client_out(client: Client, buffer: PollBuffer) -> None:
    with ExitStack() as stack, connected(client.url) as known:
        known.sendall(HEAD)
        assert known.recv(65_536).startswith(b"HTTP/1.1 200 ")
        for _ in range(200):
            stack.enter_context(connected(client.url)).sendall(b"GET /rows HT")
        assert client.ask().status == 200
        known.sendall(HEAD)
        assert known.recv(65_536).startswith(b"HTTP/1.1 200 "), "who has shown the token keeps its connection"
    wait_until(lambda: buffer.report()["in_flight"] == 0, WAIT_S, "no page is being sent")


def test_of_clients_that_all_have_the_token_those_beyond_the_most_are_refused(client: Client) -> None:
    with ExitStack() as stack:
        for _ in range(64):
            made = stack.enter_context(connected(client.url))
            made.sendall(HEAD)
            assert made.recv(65_536).startswith(b"HTTP/1.1 200 ")
        with pytest.raises((ConnectionError, RemoteDisconnected)):
            client.ask()
    wait_until(lambda: answers(client), WAIT_S, "there is a place again")


@pytest.mark.parametrize("linger", [b"\0" * 8, b"\x01\0\0\0\0\0\0\0"], ids=["an end", "a reset"])
def test_clients_that_die_while_they_wait_keep_no_other_out(
    client: Client, buffer: PollBuffer, linger: bytes
) -> None:
    cursor = client.ask().next
    for _ in range(100):
        with connected(client.url) as made:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            made.sendall(HEAD.replace(b"/rows", f"/rows?wait=60&after={cursor}".encode()))
    assert client.ask(after=cursor).status == 200
    buffer.put(rows(3))
    assert len(client.ask(after=cursor).rows) == 3
    wait_until(lambda: buffer.report()["in_flight"] == 0, WAIT_S, "no page is being sent")


def answers(client: Client) -> bool:
    try:
        return client.ask().status == 200
    except OSError:
        return False


def test_a_request_that_comes_too_slowly_ends_its_connection(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_HEAD_S", 0.05)
    with connected(client.url) as made:
        made.sendall(HEAD[:10])
        assert made.recv(1) == b""


def test_a_client_that_does_not_read_its_page_loses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEND_S", 0.05)
    settings = PollSettings(TOKEN, page_bytes=64 * 1024 * 1024)
    with served(settings, Limits(concurrency=1, buffer_bytes=64 * 1024 * 1024)) as (buffer, url):
        buffer.put([b'"%s"' % (b"x" * 1_000_000)] * 30)
        with connected(url) as made:
            made.sendall(HEAD)
            wait_until(lambda: buffer.report()["lanes"][""]["errors"] == 1, WAIT_S, "it is late")
        assert buffer.report()["in_flight"] == 0
        monkeypatch.setattr(module, "SEND_S", 30.0)
        assert len(Client(url).ask().rows) == 30
        assert buffer.report()["buffered"] == 30


@pytest.mark.parametrize("where", ["of_page", "Answer.encoded"])
def test_a_page_for_which_there_is_no_memory_keeps_no_later_one_out(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fails(*_: object, **__: object) -> bytes:
        raise MemoryError

    with served(limits=Limits(concurrency=1)) as (buffer, url):
        buffer.put(rows(3))
        client = Client(url)
        with monkeypatch.context() as patch:
            patch.setattr(f"{module.__name__}.{where}", fails)
            with contextlib.suppress(ConnectionError, RemoteDisconnected):
                assert client.ask().status == 500
        wait_until(lambda: buffer.report()["in_flight"] == 0, WAIT_S, "it is not being sent")
        assert len(client.ask().rows) == 3


def test_an_attempt_that_fails_answers_clients_that_wait_and_those_that_ask_soon(
    buffer: PollBuffer, client: Client
) -> None:
    cursor = client.ask().next
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(client.ask, after=cursor, wait=60)
        wait_until(lambda: buffer.report()["buffered"] == 0, WAIT_S, "it is there")
        buffer.fail(RuntimeError("a secret of the source"))
        for reply in (waits.result(WAIT_S), client.ask(after=cursor)):
            assert (reply.status, reply.error) == (500, "failed")
            assert "a further attempt serves all rows again" in reply.document["error"]["message"]
            assert "secret" not in str(reply.document)


def test_a_server_that_ends_after_an_error_waits_until_its_client_knows() -> None:
    with served() as (buffer, url):
        buffer.put(rows(3))
        client = Client(url)
        client.ask()
        with ThreadPoolExecutor() as pool:
            buffer.fail(RuntimeError("no"))
            late = pool.submit(client.ask)
            assert late.result(WAIT_S).error == "failed"
    with pytest.raises(ConnectionRefusedError):
        client.ask()


def test_the_end_whose_answer_is_lost_is_there_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LINGER_S", float(WAIT_S))
    with ThreadPoolExecutor() as pool, served() as (buffer, url):
        buffer.put(rows(3))
        done, client = pool.submit(buffer.finish), Client(url)
        cursor = client.ask().next
        with connected(url) as made:
            # Without a word, and with a reset instead of an end: the answer is lost.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            made.sendall(HEAD.replace(b"/rows", f"/rows?after={cursor}".encode()))
            assert ended(done) == 3
        assert client.ask(after=cursor).document["end"] is True


def test_a_page_has_the_bytes_of_the_table_and_the_rows_of_the_request() -> None:
    with served(PollSettings(TOKEN, page_records=5, page_bytes=30)) as (buffer, url):
        buffer.put(rows(10))
        client = Client(url)
        assert len(client.ask().rows) == 4, "of 7 bytes each"
        assert len(client.ask(limit=2).rows) == 2
        buffer.adjust(Limits(is_suspended=True))
        assert client.ask().rows == []


def test_tls_is_needed_for_other_hosts_and_serves_them(certificates: Certificates) -> None:
    with pytest.raises(SettingError, match="other hosts can reach"):
        PollServer(PollBuffer(), PollSettings(TOKEN, "0.0.0.0")).start()  # noqa: S104 - it is refused
    with pytest.raises(SettingError, match="no PEM that fits together"):
        PollServer(PollBuffer(), PollSettings(TOKEN, chain="x"))
    chain = Path(certificates.server).read_text("utf-8")
    with served(PollSettings(TOKEN, "0.0.0.0", chain=chain)) as (buffer, url):  # noqa: S104 - with TLS
        assert url.startswith(f"https://{socket.gethostname()}:")
        buffer.put(rows(3))
        local = f"https://localhost:{urlsplit(url).port}/rows"
        trust = ssl.create_default_context(cafile=certificates.ca)
        assert numbers(Client(local, tls=trust).ask().rows) == [0, 1, 2]
        assert answer_to(local, HEAD) == b"", "plain HTTP gets nothing"
        with ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(connected(local))  # they begin no TLS
            assert Client(local, tls=trust).ask().status == 200


@pytest.mark.parametrize(
    "token", ["short", "x" * 5000, "with a space in it", "with\nanother line", "\u00e4" * 16]
)
def test_a_token_that_is_weak_or_fits_into_no_header_is_refused(token: str) -> None:
    with pytest.raises(SettingError, match="16 to 4096 printable ASCII characters") as caught:
        PollSettings(token)
    assert token not in str(caught.value)


def test_a_port_that_is_taken_is_an_error_and_leaves_no_thread() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        PollServer(PollBuffer(), PollSettings(TOKEN, port=taken.getsockname()[1])).start()
    assert not [each for each in threading.enumerate() if each.name == "poll-server"]


def test_a_server_without_clients_ends_at_once() -> None:
    with closing(PollServer(PollBuffer(), PollSettings(TOKEN))) as server:
        server.start()
