"""Errors in answers, whose secrets are masked, and answers that are too large or have no end."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.elasticsearch import bulk as bulk_module
from spark_runner.connectors.elasticsearch.client import LINES, Client
from spark_runner.connectors.elasticsearch.pages import PageReader
from spark_runner.connectors.elasticsearch.sink import ElasticsearchSink
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.push.errors import TimedOut
from tests.elasticsearch_rows import changed, row, write
from tests.elasticsearch_support import Indices, options
from tests.log_proxy import Asked, LogProxy, Said

SECRET = "qJ7wZ4kXbN2mR8tV"  # noqa: S105 - of the test alone
PART = SECRET[:4]


Serve = Callable[[socket.socket, threading.Event], None]


@contextmanager
def served(serve: Serve) -> Iterator[str]:
    """URL of a server that serves its only connection so, until the event is set or the client goes."""
    ended = threading.Event()

    def run(listener: socket.socket) -> None:
        with suppress(OSError):  # the client goes, or the test ends
            connection, _ = listener.accept()
            with connection:
                serve(connection, ended)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=run, args=(listener,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
    thread.join(20)


@pytest.fixture
def dripping() -> Iterator[str]:
    """URL of a server whose answer comes byte by byte and has no end."""

    def drip(connection: socket.socket, ended: threading.Event) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        while not ended.wait(0.02):
            connection.sendall(b" ")

    with served(drip) as url:
        yield url


@pytest.fixture
def endless() -> Iterator[str]:
    """URL of a server that announces its answer without end."""

    def announce(connection: socket.socket, ended: threading.Event) -> None:
        connection.recv(65536)
        while not ended.wait(0.02):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    with served(announce) as url:
        yield url


@pytest.fixture
def slow_reader() -> Iterator[str]:
    """URL of a server that receives nothing for a second."""

    def read(connection: socket.socket, ended: threading.Event) -> None:
        ended.wait(1.0)
        left = 20_000_000
        with connection.makefile("rb") as file:
            while file.readline().strip():
                pass
            while left:
                left -= len(file.read1(left))
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    with served(read) as url:
        yield url


def test_no_part_of_a_secret_is_in_a_long_error(
    proxy_saying_the_secret: LogProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = proxy_saying_the_secret.url
    monkeypatch.setattr("spark_runner.protocol.redacted._known", [SECRET])
    given = options(url, index="any", username="u", password=SECRET)
    with Client(given) as client, pytest.raises(ConnectorError, match="refused: 400") as found:
        client.check(client.ask("GET", "/any"))
    assert PART not in str(found.value)
    with Client(given, [SECRET]) as client, pytest.raises(ConnectorError, match="refused: 400") as found:
        client.check(client.ask("GET", "/any"))
    assert PART not in str(found.value)


@pytest.fixture
def proxy_saying_the_secret(elasticsearch_proxy: LogProxy) -> LogProxy:
    error = {"type": "parsing_exception", "reason": "x" * 470 + SECRET}
    elasticsearch_proxy.rule = lambda _: Said.document(400, {"error": error})
    return elasticsearch_proxy


def test_no_secret_is_in_the_reason_of_a_rejected_row(
    indices: Indices, elasticsearch_proxy: LogProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.protocol.redacted._known", [SECRET])
    index = indices.new("reasons", {"n": "long"})
    given = {"index": index, "username": "u", "password": SECRET}
    ((reason, _),) = write(indices.url, [row(index, SECRET)], **given)
    assert "document_parsing_exception" in reason
    assert "***" in reason
    assert PART not in reason

    def quote(asked: Asked) -> Said:
        said = asked.forward()
        return (
            changed(said, 0, 400, "mapper_parsing_exception", "x" * 470 + SECRET) if asked.is_bulk else said
        )

    elasticsearch_proxy.rule = quote
    ((reason, _),) = write(elasticsearch_proxy.url, [row(index, 1)], **given)
    assert PART not in reason


def test_tasks_of_spark_mask_secrets_that_the_driver_has(
    indices: Indices, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.protocol.redacted._known", [SECRET])
    given = options(indices.url, index=indices.new("tasks", {"n": "long"}), username="u", password=SECRET)
    request = WriteRequest("append", Writer("run"), ("n",))
    written = ElasticsearchSink().write(spark.sql(f"SELECT '{SECRET}' AS n"), given, request)
    assert written.rejected is not None
    ((reason, _),) = written.rejected.collect()
    assert "***" in reason
    assert PART not in reason


def test_results_of_more_bytes_than_a_task_may_hold_come_in_parts(
    indices: Indices, elasticsearch_proxy: LogProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_module, "_MOST_BYTES", 2048)
    index, sizes = indices.new("results", {"n": "long"}), list[int]()

    def look(asked: Asked) -> Said:
        said = asked.forward()
        sizes.append(len(said.body))
        return said

    elasticsearch_proxy.rule = look
    rows = [row(index, number) for number in range(10)] + [row(index, f"x{number}") for number in range(40)]
    rejected = write(elasticsearch_proxy.url, rows, index=index)
    assert [text for _, text in rejected] == rows[10:]
    assert indices.count(index) == 10
    assert max(sizes) > 2048


def test_an_answer_without_an_end_does_not_hold_a_task(dripping: str) -> None:
    given = options(dripping, request_timeout=0.5)
    with Client(given) as client, pytest.raises(Unreachable, match=r"its answer has no end after 0\.5 s"):
        client.ask("GET", "/any")


def test_an_answer_that_never_begins_does_not_hold_a_task(endless: str) -> None:
    given = options(endless, request_timeout=0.5)
    with Client(given) as client, pytest.raises(TimedOut, match="does not answer"):
        client.attempt("POST", "/_bulk", b"{}\n", LINES, 1024)


def test_a_request_may_take_longer_to_send_than_a_connection_to_open(slow_reader: str) -> None:
    given = options(slow_reader, connect_timeout=0.2, request_timeout=20)
    with Client(given) as client:
        assert client.attempt("POST", "/_bulk", bytes(20_000_000), LINES, 1024).status == 200


def test_the_error_of_a_search_names_its_root(indices: Indices) -> None:
    index = indices.new("root", {"n": "long"})
    given = options(indices.url, index=index, partitions=1)
    wrong = {"range": {"n": {"gte": "many"}}}
    reader = PageReader({**given, "query": wrong, "fields": True})
    with pytest.raises(ConnectorError, match=r"shards? fail.*: query_shard_exception: .*\"many\""):
        list(reader.read(reader.partitions()[0]))
