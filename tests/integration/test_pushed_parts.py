"""Sinks whose requests have many rows, by the push engine: what it shows, and how an operator steers it."""

import json
import threading

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.elasticsearch.sink import ElasticsearchSink
from spark_runner.connectors.options import to_plan, validate
from spark_runner.connectors.redis.sink import RedisSink
from spark_runner.push.adjustment import Adjustment
from spark_runner.push.pushes import Pushes
from tests.elasticsearch_support import Indices
from tests.log_proxy import Asked, LogProxy, Said
from tests.servers.redis import RedisServer
from tests.waiting import wait_until

ROWS, PARTITIONS = 3000, 3
WAIT_S = 120


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, PARTITIONS)


def request(pushes: Pushes, key: tuple[str, ...] = ()) -> WriteRequest:
    return WriteRequest("append", Writer("run"), key, target="t", pushes=pushes)


def test_an_operator_suspends_a_write_to_redis_whose_rows_are_counted(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str
) -> None:
    given = {**redis_server.options, "command": "RPUSH", "key": f"{redis_keys}:{{id}}", "batch_size": "100"}
    options, pushes, written = to_plan(validate("redis", given)), Pushes(), list[Written]()
    with redis_server.client() as client:
        for number in range(0, ROWS, 100):
            client.set(f"{redis_keys}:{number}", "no list")
        pushes.adjust(Adjustment(is_suspended=True))
        thread = threading.Thread(
            target=lambda: written.append(RedisSink().write(rows(spark), options, request(pushes)))
        )
        thread.start()
        wait_until(lambda: pushes.document().get("t", {}).get("buffered"), WAIT_S, "rows are read")
        found = pushes.document()["t"]
        assert (found["delivered"], found["requests"]) == (0, 0)
        assert found["read"] < ROWS, "at most two parts of each task are read"
        wait_until(lambda: pushes.document()["t"]["water_line"] > 0.8, WAIT_S, "full buffers stop reading")
        pushes.adjust(Adjustment(concurrency=1))
        thread.join(WAIT_S)
        assert client.llen(f"{redis_keys}:{ROWS - 1}") == 1
    found = pushes.document()["t"]
    assert (found["read"], found["delivered"], found["dead"]) == (ROWS, ROWS - ROWS // 100, ROWS // 100)
    assert (found["requests"], found["buffered"], found["errors"]) == (ROWS // 100, 0, 0)
    assert (found["limits"]["concurrency"], written[0].rows) == (1, ROWS - ROWS // 100)


@pytest.mark.parametrize("key", [("id",), ()])
def test_rows_that_a_busy_elasticsearch_refuses_come_again_alone_and_are_counted(
    spark: SparkSession, indices: Indices, elasticsearch_proxy: LogProxy, key: tuple[str, ...]
) -> None:
    index, proxy = indices.new("busy"), elasticsearch_proxy
    whole, part = list[Asked](), list[Asked]()
    refused = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}}

    def busy(asked: Asked) -> Said:
        if not asked.is_bulk or part:
            return asked.forward()
        if not whole:
            whole.append(asked)
            return Said.error(429, "es_rejected_execution_exception")
        part.append(asked)  # ten rows are refused
        items = json.loads(asked.forward(b"".join(asked.records[10:])).body)["items"]
        return Said.document(200, {"errors": True, "items": [{"index": refused}] * 10 + items})

    proxy.rule = busy
    options = to_plan(validate("elasticsearch", {"hosts": proxy.url, "index": index}))
    pushes = Pushes()
    ElasticsearchSink().write(rows(spark), options, request(pushes, key))
    assert indices.count(index) == ROWS
    found = pushes.document()["t"]
    assert (found["read"], found["delivered"], found["dead"], found["errors"]) == (ROWS, ROWS, 0, 1)
    assert found["retried"] == len(whole[0].records) + 10
    assert len(proxy.bulks) == found["requests"]
