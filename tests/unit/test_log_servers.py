"""Log servers that fail or are hostile: answers are limited in bytes and time, and the error says so."""

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from orchestrator.archive.base import ArchiveError
from orchestrator.archive.elasticsearch import ElasticsearchArchive
from orchestrator.logs.errors import LogsError, TargetUnreachable
from orchestrator.logs.reading.query import LogQuery
from orchestrator.logs.reading.search import LogSearch
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.shipping import bounded
from orchestrator.logs.shipping.http import Http

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Elastic-Product: Elasticsearch\r\n"


@contextmanager
def server(answer: Callable[[socket.socket], object]) -> Iterator[Http]:
    """A client of a server that answers each request in this way."""
    with listening(answer) as url, closing(Http([url])) as http:
        yield http


@contextmanager
def listening(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """The address of a server that answers each request in this way until its client is gone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            try:
                while True:
                    client, _ = listener.accept()
                    with client:
                        client.settimeout(10)
                        if client.recv(65536).startswith(b"HEAD "):
                            # Its answer has no body: further bytes would be read as the next answer.
                            client.sendall(HEAD + b"Connection: close\r\n\r\n")
                        else:
                            answer(client)
            except OSError:
                return

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def endless(client: socket.socket, piece: bytes = b"x" * 65536) -> None:
    client.sendall(HEAD + b"\r\n")
    try:
        while True:
            client.sendall(piece)
    except OSError:  # it has gone
        return


def test_an_answer_without_an_end_is_read_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_ANSWER_BYTES", 1_000_000)
    with server(endless) as http, pytest.raises(TargetUnreachable, match="more than 1,000,000 bytes"):
        http.request("GET", "/")


def test_an_answer_that_comes_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_ANSWER_SECONDS", 0.2)
    with (
        server(lambda client: endless(client, b" ")) as http,
        pytest.raises(TargetUnreachable, match=r"did not end in 0\.2 s"),
    ):
        http.request("GET", "/")


def test_headers_that_come_byte_by_byte_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_ANSWER_SECONDS", 0.2)

    def send(client: socket.socket) -> None:
        client.sendall(HEAD + b"X: ")
        try:
            while True:
                client.sendall(b"x")
                time.sleep(0.005)
        except OSError:  # it has gone
            return

    with server(send) as http, pytest.raises(TargetUnreachable, match=r"did not end in 0\.2 s"):
        http.request("GET", "/")


def test_an_answer_that_is_small_until_it_is_unpacked_is_read_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounded, "MAX_ANSWER_BYTES", 1_000_000)
    bomb = gzip.compress(b" " * 50_000_000)

    def send(client: socket.socket) -> None:
        client.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb)

    with server(send) as http, pytest.raises(TargetUnreachable, match="more than 1,000,000 bytes"):
        http.request("GET", "/")


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"{}",
        b"[]",
        b'{"hits": 3}',
        b'{"hits": {"hits": [3]}}',
        b'{"hits": {"hits": [{"_id": 1, "_source": 2}]}}',
        b'{"hits": {"hits": 3}}',
        b'{"id": []}',
    ],
    ids=["deep", "object", "list", "number", "hit", "source", "hits", "id"],
)
def test_an_answer_that_is_none_of_elasticsearch_is_refused_in_words(body: bytes) -> None:
    def send(client: socket.socket) -> None:
        client.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    with server(send) as http:
        logs = LogSearch(http, "logs")
        with pytest.raises(LogsError):
            logs.last(LogQuery.of(), 10)
        with pytest.raises(LogsError):
            list(logs.entries(LogQuery.of()))


def test_a_connection_is_kept_for_the_next_request() -> None:
    answered: list[int] = []

    def twice(client: socket.socket) -> None:
        for number in range(2):
            client.sendall(HEAD + b'Content-Length: 7\r\n\r\n{"a":1}')
            answered.append(number)
            if not number:
                client.recv(65536)

    with server(twice) as http:
        assert [http.request("GET", "/").body for _ in range(2)] == [{"a": 1}] * 2
    assert answered == [0, 1]


def test_the_archive_reads_to_a_limit_and_its_key_is_masked_where_a_server_quotes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "MAX_ANSWER_BYTES", 1_000_000)
    (tmp_path / "key").write_text("a2V5LW9mLXRoZS1hcmNoaXZl")
    with (
        listening(endless) as url,
        closing(ElasticsearchArchive(url, "jobs", key_file=tmp_path / "key")) as archive,
        pytest.raises(ArchiveError, match="more than 1,000,000 bytes"),
    ):
        archive.write({"run_key": "1", "id": "1"})
    assert REDACTOR.mask("refused: a2V5LW9mLXRoZS1hcmNoaXZl") == "refused: ***"


def test_an_answer_to_the_archive_that_is_nested_deeply_is_a_failure_in_words() -> None:
    def send(client: socket.socket) -> None:
        client.sendall(HEAD + b"Connection: close\r\nContent-Length: 100000\r\n\r\n" + b"[" * 100_000)

    with (
        listening(send) as url,
        closing(ElasticsearchArchive(url, "jobs")) as archive,
        pytest.raises(ArchiveError, match="index jobs at"),
    ):
        archive.write({"run_key": "1", "id": "1"})
