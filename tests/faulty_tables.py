"""A table of each connector on its real server, behind a proxy that breaks the way to it."""

import json
import ssl
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from queues.embedded.ports import free_ports
from spark_runner.connectors.base import Sink, Writer, WriteRequest, Written
from spark_runner.connectors.errors import Unreachable
from spark_runner.connectors.options import to_plan, validate
from spark_runner.connectors.registry import BUILT_IN, load
from tests.byte_proxy import ByteProxy
from tests.chaos.proxy import ProxyLoop
from tests.elasticsearch_support import Indices
from tests.kafka_support import add_kafka
from tests.servers.databases import PASSWORD, DatabaseServer, add_drivers, mariadb_at, postgres_at
from tests.servers.kafka import ADA, Topics
from tests.servers.redis import RedisServer, local_redis
from tests.servers.secured import Certificates
from tests.servers.web import WebServer, ok, web_server
from tests.servers.zookeeper import unavailable

Rows = list[tuple[int, str]]

ROWS = 2000
EXPECTED: Rows = [(number, chr(97 + number % 26) * 200) for number in range(ROWS)]
_MOST_ATTEMPTS = 6


def rows_of(spark: SparkSession) -> DataFrame:
    """The rows of `EXPECTED`, in two partitions."""
    return spark.range(0, ROWS, 1, 2).selectExpr("id", "repeat(char(97 + id % 26), 200) AS text")


@dataclass(frozen=True)
class Table:
    """A table with the columns id and text, and what is in it now."""

    connector: str
    options: dict[str, Any]  # as the plan of a job has them
    found: Callable[[], Rows]
    proxy: ByteProxy
    key: tuple[str, ...] = ()
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def write(self, rows: DataFrame, attempt: int = 1) -> Written:
        """Write as one attempt of a job."""
        sink: Sink = load(BUILT_IN[self.connector].sink)()  # each attempt has a driver of its own
        writer = Writer(self.run, attempt)
        sink.recover(rows.sparkSession, self.options, writer)
        return sink.write(rows, self.options, WriteRequest("append", writer, self.key))

    def write_at_last(self, rows: DataFrame) -> int:
        """Write as a job that is tried again while its target is unreachable; returns the attempts."""
        for attempt in range(1, _MOST_ATTEMPTS):
            try:
                self.write(rows, attempt)
            except Unreachable:
                continue
            return attempt
        self.write(rows, _MOST_ATTEMPTS)
        return _MOST_ATTEMPTS


class Tables:
    """Makes tables for one test; with certificates, over TLS."""

    def __init__(
        self, request: pytest.FixtureRequest, stack: ExitStack, certificates: Certificates | None = None
    ) -> None:
        self._request, self._stack, self._certificates = request, stack, certificates
        self._proxies = stack.enter_context(ProxyLoop())
        self._host = "localhost" if certificates else "127.0.0.1"  # the name of certificates
        self.web: WebServer | None = None  # of the table of http

    def table(self, kind: str, **options: str) -> Table:
        """A table of kafka, postgres, mariadb, elasticsearch, redis or http."""
        connector, given, found, proxy = getattr(self, f"_{kind}")()
        key = ("id",) if connector == "elasticsearch" else ()
        checked = to_plan(validate(connector, {**given, **options}, ("id", "text")))
        return Table(connector, checked, found, proxy, key)

    def _kafka(self) -> "_Made":
        add_kafka(self._request.getfixturevalue("spark"))
        topics: Topics = self._request.getfixturevalue("topics")
        kafka, topic = topics.kafka, topics.new()
        proxied = kafka.tls_proxied if self._certificates else kafka.proxied
        if proxied is None:
            unavailable("the broker of KAFKA_BOOTSTRAP_SERVERS was not started by the tests")
        proxy = self._proxy(proxied.port, port=proxied.advertised)
        options = {"topic": topic, "bootstrap_servers": f"{self._host}:{proxy.port}"}
        if self._certificates:
            options |= {"username": ADA[0], "password": ADA[1], "sasl_mechanism": "PLAIN"}
            options["ssl_ca"] = Path(kafka.ca).read_text("utf-8")
        return "kafka", options, lambda: _of_json(each.value or b"" for each in kafka.records(topic)), proxy

    def _postgres(self) -> "_Made":
        if not self._certificates:
            return self._database(self._request.getfixturevalue("postgres"))
        port: int = self._request.getfixturevalue("postgres_tls_port")
        return self._database(postgres_at(port), f"?sslmode=verify-full&sslrootcert={self._certificates.ca}")

    def _mariadb(self) -> "_Made":
        if not self._certificates:
            return self._database(self._request.getfixturevalue("mariadb"))
        port: int = self._request.getfixturevalue("mariadb_tls_port")
        return self._database(mariadb_at(port), f"?sslMode=verify-full&serverSslCert={self._certificates.ca}")

    def _database(self, database: DatabaseServer, more: str = "") -> "_Made":
        add_drivers(self._request.getfixturevalue("spark"))
        database.run("CREATE TABLE kept (id bigint, text varchar(300))")
        proxy = self._proxy(database.port)
        url = replace(database, host=self._host, port=proxy.port).url + more
        options = {"url": url, "table": "kept", "username": database.user, "password": PASSWORD}

        def found() -> Rows:
            rows = database.run("SELECT id, text FROM kept ORDER BY id, text")
            return [(int(number), text) for number, text in rows]

        return "jdbc", options, found, proxy

    def _elasticsearch(self) -> "_Made":
        indices: Indices = self._request.getfixturevalue("indices")
        index = indices.new("faults", {"id": "long", "text": "keyword"})
        port = int(indices.url.rpartition(":")[2])
        options = {"index": index}
        if self._certificates:  # a server with TLS of its own starts slowly
            port = self._proxy(port, tls=_server_tls(self._certificates)).port
            options["ca_file"] = self._certificates.ca
        proxy = self._proxy(port)
        scheme = "https" if self._certificates else "http"

        def found() -> Rows:
            rows = indices.documents(index).values()
            return sorted((int(each["id"]), str(each["text"])) for each in rows)

        options["hosts"] = f"{scheme}://{self._host}:{proxy.port}"
        return "elasticsearch", options, found, proxy

    def _redis(self) -> "_Made":
        server, port = self._redis_server()
        proxy = self._proxy(port)
        options = {"host": self._host, "port": str(proxy.port), "key": "{id}", "value": "{text}"}
        if self._certificates:
            options |= {"tls": "true", "ca_file": self._certificates.ca}

        def found() -> Rows:
            with server.client() as client:
                names = list(client.scan_iter("*", count=ROWS))
                values = client.mget(names) if names else []
            return sorted(zip(map(int, names), map(str, values), strict=True))

        return "redis", options, found, proxy

    def _redis_server(self) -> tuple[RedisServer, int]:
        """A server, and its port for the table."""
        if not self._certificates:
            server = self._stack.enter_context(local_redis())
            return server, server.port
        (port,), own = free_ports("127.0.0.1", 1), self._certificates.server
        files = ("--tls-cert-file", own, "--tls-key-file", own, "--tls-ca-cert-file", self._certificates.ca)
        tls = ("--tls-port", str(port), "--tls-auth-clients", "no")
        return self._stack.enter_context(local_redis(*tls, *files)), port

    def _http(self) -> "_Made":
        context = _server_tls(self._certificates) if self._certificates else None
        self.web = server = self._stack.enter_context(web_server(ok, context=context))
        proxy = self._proxy(int(server.url.rpartition(":")[2]))
        scheme = "https" if self._certificates else "http"
        options = {"url": f"{scheme}://{self._host}:{proxy.port}/items", "batch_size": "50"}
        options |= {"batch_format": "ndjson", "concurrency": "2"}  # a connection has a fault after many bytes
        if self._certificates:
            options["ssl_ca"] = Path(self._certificates.ca).read_text("utf-8")

        def found() -> Rows:
            """The rows of a receiver that honours the keys of whole requests."""
            whole = [
                each for each in server.received if int(each.headers["content-length"]) == len(each.body)
            ]
            kept = {each.headers["idempotency-key"]: each.body for each in whole}
            return _of_json(line for body in kept.values() for line in body.splitlines())

        return "http", options, found, proxy

    def _proxy(self, server: int, *, port: int = 0, tls: ssl.SSLContext | None = None) -> ByteProxy:
        return self._stack.enter_context(ByteProxy(self._proxies, server, port=port, tls=tls))


_Made = tuple[str, dict[str, str], Callable[[], Rows], ByteProxy]
"""The connector, the options, a look at the rows, and the proxy."""


def _of_json(lines: Iterable[bytes]) -> Rows:
    rows = [json.loads(line) for line in lines]
    return sorted((int(each["id"]), str(each["text"])) for each in rows)


def _server_tls(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server)
    return context
