"""The memory of a Python worker of Spark: large rows to a slow target or from Redis, and very many rows."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Sink, Writer, WriteRequest
from spark_runner.connectors.elasticsearch.sink import ElasticsearchSink
from spark_runner.connectors.http.sink import HttpSink
from spark_runner.connectors.jdbc.sink import JdbcSink
from spark_runner.connectors.options import to_plan, validate
from spark_runner.connectors.redis.sink import RedisSink
from spark_runner.connectors.redis.source import RedisSource
from tests.elasticsearch_support import Indices
from tests.log_proxy import Asked, LogProxy, Said
from tests.sampling import is_whole, times
from tests.servers.databases import PASSWORD, DatabaseServer, add_drivers
from tests.servers.redis import RedisServer
from tests.servers.web import Received, Reply, web_server

ROWS = times(30, 60)
MANY = times(200_000, 10_000_000)
SIZE = 10_000_000  # bytes of a row
MOST = 250 * 1024 * 1024
"""Resident bytes of a worker: 185 MiB were seen in a new one, 208 to 221 in one that had written large rows
before, and at least 264 with the 64 MiB that Spark would hold."""
PAUSE_S = 0.02  # of a target for each request
REQUEST = WriteRequest("append", Writer("run"))


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    """Large rows for one task."""
    return spark.range(0, ROWS, 1, 1).selectExpr("id", f"repeat('x', {SIZE}) AS text")


@dataclass
class Peak:
    """The most bytes that a Python worker of Spark had in memory at once."""

    most: int = 0

    def look(self) -> None:
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if "pyspark.daemon" in process.cmdline():
                    self.most = max(self.most, process.memory_info().rss)


@contextmanager
def watched() -> Iterator[Peak]:
    peak, ended = Peak(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.01):
            peak.look()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def test_requests_of_http_hold_few_rows_at_once(rows: DataFrame) -> None:
    taken = 0

    def slow(_: Received) -> Reply:
        nonlocal taken
        taken += 1
        server.received.clear()
        return Reply(delay_s=PAUSE_S)

    with web_server(slow) as server, watched() as peak:
        options = {"url": server.url, "idempotency_header": ""}  # keys would need a shuffle
        HttpSink().write(rows, to_plan(validate("http", options)), REQUEST)
    assert taken == ROWS
    assert 0 < peak.most < MOST


def test_bulk_requests_of_elasticsearch_hold_few_rows_at_once(rows: DataFrame, indices: Indices) -> None:
    index, taken = indices.new("large"), list[int]()

    def slow(asked: Asked) -> Said:
        if not asked.is_bulk:
            return asked.forward()
        taken.append(len(asked.records))
        time.sleep(PAUSE_S)
        items = [{"index": {"status": 201}} for _ in asked.records]
        return Said.document(200, {"errors": False, "items": items})

    with LogProxy(indices.url, slow) as proxy, watched() as peak:
        ElasticsearchSink().write(
            rows, to_plan(validate("elasticsearch", {"hosts": proxy.url, "index": index})), REQUEST
        )
    assert sum(taken) == ROWS
    assert 0 < peak.most < MOST


def test_a_copy_into_postgresql_holds_few_rows_at_once(rows: DataFrame, postgres: DatabaseServer) -> None:
    add_drivers(rows.sparkSession)
    postgres.run("CREATE TABLE kept (id bigint, text text)")
    options = {"url": postgres.url, "table": "kept", "username": postgres.user, "password": PASSWORD}
    with watched() as peak:
        JdbcSink().write(rows, to_plan(validate("jdbc", options)), REQUEST)
    assert postgres.run("SELECT count(*), min(length(text)) FROM kept") == [[str(ROWS), str(SIZE)]]
    assert 0 < peak.most < MOST


def test_a_read_of_redis_holds_few_values_at_once(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str
) -> None:
    with redis_server.client() as client:
        for number in range(ROWS):
            client.set(f"{redis_keys}:{number}", "x" * SIZE)
    options = to_plan(validate("redis", {**redis_server.options, "key": f"{redis_keys}:*"}))
    schema = StructType().add("key", "string").add("value", "string")
    with watched() as peak:
        found = (
            RedisSource().read(spark, options, schema).selectExpr("count(*)", "sum(length(value))").first()
        )
    assert found is not None
    assert tuple(found) == (ROWS, ROWS * SIZE)
    assert 0 < peak.most < MOST


@pytest.fixture(params=["postgres", "redis", pytest.param("elasticsearch", marks=pytest.mark.elasticsearch)])
def small_rows(request: pytest.FixtureRequest) -> tuple[Sink, dict[str, Any]]:
    """A sink for rows of a number and a short text, and the options of a table."""
    match request.param:
        case "postgres":
            database: DatabaseServer = request.getfixturevalue("postgres")
            add_drivers(request.getfixturevalue("spark"))
            database.run("CREATE TABLE kept (id bigint, text text)")
            given = {"url": database.url, "table": "kept", "username": database.user, "password": PASSWORD}
            return JdbcSink(), to_plan(validate("jdbc", given))
        case "redis":
            server: RedisServer = request.getfixturevalue("redis_server")
            key = f"{request.getfixturevalue('redis_keys')}:{{text}}"  # few keys: the server keeps little
            return RedisSink(), to_plan(validate("redis", {**server.options, "key": key}))
    indices: Indices = request.getfixturevalue("indices")
    index = indices.new("many", {"id": "long", "text": "keyword"})
    return ElasticsearchSink(), to_plan(validate("elasticsearch", {"hosts": indices.url, "index": index}))


@pytest.mark.timeout(1800 if is_whole() else 120, func_only=True)
def test_many_rows_need_no_more_memory_than_few(
    spark: SparkSession, small_rows: tuple[Sink, dict[str, Any]]
) -> None:
    sink, options = small_rows
    rows = spark.range(0, MANY, 1, 2).selectExpr("id", "concat('text of row ', id % 1000) AS text")
    with watched() as peak:
        assert sink.write(rows, options, REQUEST).rows == MANY
    assert 0 < peak.most < MOST
    print(f"{type(sink).__name__}: {MANY} rows, {peak.most >> 20} MiB")  # noqa: T201 - a figure of the campaign
