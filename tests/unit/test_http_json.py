import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from spark_runner.protocol.errors import BackendUnreachable
from spark_runner.runners import http_json
from spark_runner.runners.http_json import ClusterHttp

Serve = Callable[[bytes], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Answer each connection with the given bytes and close it; yield the URL."""
    listeners: list[socket.socket] = []
    asked.clear()

    def start(answer: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        asked.append(whole_request(connection))
                        connection.sendall(answer)

        threading.Thread(target=run, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"

    yield start
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


asked: list[bytes] = []


def whole_request(connection: socket.socket) -> bytes:
    data = b""
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0
        )
        if end and len(body) >= length:
            return data
        data += connection.recv(65536)


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def test_a_document_comes_back_with_its_status(serve: Serve) -> None:
    reply = ClusterHttp().get(serve(answer(b'{"a": 1}', "404 Not Found")))
    assert (reply.status, reply.is_good, reply.json()) == (404, False, {"a": 1})


def test_a_document_is_sent_as_json_and_a_form_as_a_form(serve: Serve) -> None:
    url = serve(answer(b"{}"))
    ClusterHttp(headers={"Authorization": "Bearer x"}).send("PUT", url, {"é": [1]})
    assert asked[0].startswith(b"PUT / ")
    assert b"Authorization: Bearer x" in asked[0]
    assert asked[0].endswith(b'{"\\u00e9": [1]}')
    ClusterHttp().post_form(url, {"id": "a b", "csrfToken": "x&y"})
    assert asked[1].endswith(b"id=a+b&csrfToken=x%26y")


def test_a_redirect_is_an_answer_and_is_not_followed(serve: Serve) -> None:
    reply = ClusterHttp().get(serve(answer(b"", "302 Found", "Location: http://127.0.0.1:1/")))
    assert (reply.status, reply.headers["Location"]) == (302, "http://127.0.0.1:1/")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "does not answer"),
        (b"nonsense\r\n\r\n", "does not answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "did not end its answer"),
    ],
)
def test_half_an_answer_is_none_and_what_was_sent_may_have_been_done(
    serve: Serve, sent: bytes, words: str
) -> None:
    with pytest.raises(BackendUnreachable, match=words) as raised:
        ClusterHttp().send("POST", serve(sent), {})
    assert raised.value.sent
    assert len(asked) == 1, "nothing is sent twice"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "http://no.such.host.invalid/", "http://[::1/", "x://y/"]
)
def test_a_request_that_could_not_be_sent_was_not_carried_out(url: str) -> None:
    with pytest.raises(BackendUnreachable, match="does not answer") as raised:
        ClusterHttp().send("POST", url, {})
    assert not raised.value.sent


def test_a_page_is_no_document(serve: Serve) -> None:
    with pytest.raises(BackendUnreachable, match="no JSON: '<html>"):
        ClusterHttp().get(serve(answer(b"<html>a proxy</html>"))).json()


def test_an_answer_without_end_is_cut_off(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_json, "MAX_REPLY_BYTES", 1000)
    with pytest.raises(BackendUnreachable, match="more than 1000 bytes"):
        ClusterHttp().get(serve(answer(b"x" * 200_000)))


def test_an_answer_that_comes_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_json, "REPLY_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.005)

        thread = threading.Thread(target=trickle)
        thread.start()
        with pytest.raises(BackendUnreachable, match="did not end its answer in 0 s") as raised:
            ClusterHttp().get(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        assert raised.value.sent
        thread.join(10)
        assert not thread.is_alive(), "the connection is closed"


def test_a_server_that_says_nothing_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_json, "READ_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(BackendUnreachable, match="does not answer") as raised:
            ClusterHttp().get(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        assert raised.value.sent
