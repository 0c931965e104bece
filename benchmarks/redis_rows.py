"""Rows into Redis: the connector against pipelines of redis-py in `foreachPartition`.

Both write the same JSON objects to the same keys, in turn.
"""

import json
import statistics
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator

from pyspark.sql import DataFrame, Row
from redis import Redis

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.options import to_plan, validate
from spark_runner.connectors.redis.sink import RedisSink
from tests.servers.redis import RedisServer, local_redis

BATCH = 1000  # commands of a pipeline


def ours(frame: DataFrame, server: RedisServer) -> None:
    """The connector, with its defaults."""
    given = to_plan(validate("redis", {**server.options, "key": "row:{id}"}))
    RedisSink().write(frame, given, WriteRequest("append", Writer(uuid.uuid4().hex), ()))


def by_hand(frame: DataFrame, server: RedisServer) -> None:
    """A pipeline without a transaction, executed each 1,000 commands."""

    def write(part: Iterator[Row]) -> None:
        with Redis(host=server.host, port=server.port) as client, client.pipeline(transaction=False) as sent:
            for row in part:
                value = {
                    "id": row.id,
                    "name": row.name,
                    "amount": float(row.amount),
                    "at": row.at.isoformat(),
                }
                sent.set(f"row:{row.id}", json.dumps(value))
                if len(sent) == BATCH:
                    sent.execute()
            sent.execute()

    frame.foreachPartition(write)


def measure(rows: Callable[[int, int], DataFrame], count: int, rounds: int) -> dict[str, float]:
    """Medians of rows per second; `rows` makes that many rows of a step."""
    found = defaultdict[str, list[float]](list)
    with local_redis() as server, server.client() as client:
        for step in range(rounds + 1):
            for name, work in (("redis_ours", ours), ("redis_by_hand", by_hand)):
                client.flushall()
                number = count if step else min(count, 20_000)  # step 0 warms up
                start = time.perf_counter()
                work(rows(number, step), server)
                seconds = time.perf_counter() - start
                if client.dbsize() != number:
                    raise AssertionError(f"{name}: {client.dbsize()} keys of {number} rows")
                if step:
                    found[name].append(number / seconds)
                    print(f"round {step}: {name} {found[name][-1]:,.0f} rows/s", flush=True)
    return {name: statistics.median(rates) for name, rates in found.items()}
