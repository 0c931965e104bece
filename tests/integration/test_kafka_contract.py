"""Kafka passes the suite of connectors on a real broker."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from queues.embedded.ports import free_ports
from tests.contract.kit import COLUMNS, Can
from tests.contract.suite import *  # noqa: F403 - the tests of the suite
from tests.kafka_support import add_kafka
from tests.servers.kafka import Topics

NAMES = ("id", "name", "amount")


class KafkaKit:
    """Topics with one partition, and values as JSON."""

    can = Can.READ | Can.STREAM | Can.APPEND | Can.UPSERT | Can.DELETE | Can.PROBE

    def __init__(self, topics: Topics) -> None:
        self._topics, self._made = topics, 0

    def create(self) -> str:
        self._made += 1
        return self._topics.new(str(self._made))

    def table(self, name: str, target: str, *, key: bool = False, deletes: bool = False) -> str:
        return _table(self._topics.kafka.servers, name, target, key=key, deletes=deletes)

    def put(self, target: str, rows: Sequence[tuple[Any, ...]]) -> None:
        values = [json.dumps(dict(zip(NAMES, row, strict=True))).encode() for row in rows]
        self._topics.kafka.produce(target, values)

    def rows(self, target: str) -> list[tuple[Any, ...]]:
        found: dict[Any, Any] = {}
        for record in self._topics.kafka.records(target):
            found[record.key or record.offset] = record.value
        return [tuple(json.loads(value)[name] for name in NAMES) for value in found.values() if value]

    def unreachable(self, name: str) -> tuple[str, str]:
        (port,) = free_ports("127.0.0.1", 1)
        return _table(f"127.0.0.1:{port}", name, "any"), f"no broker at 127.0.0.1:{port} answers"

    def missing(self, name: str) -> tuple[str, str]:
        topic = f"{self._topics.prefix}missing"
        return self.table(name, topic), f"topic '{topic}' does not exist"


def _table(servers: str, name: str, topic: str, *, key: bool = False, deletes: bool = False) -> str:
    more = (", gone BOOLEAN" if deletes else "") + (", PRIMARY KEY (id) NOT ENFORCED" if key else "")
    option = ", 'delete_column' = 'gone'" if deletes else ""
    return (
        f"CREATE TABLE {name} ({COLUMNS}{more}) WITH ('connector' = 'kafka', 'topic' = '{topic}',"
        f" 'properties.bootstrap.servers' = '{servers}', 'format' = 'json'{option});\n"
    )


@pytest.fixture
def kit(topics: Topics, spark: SparkSession) -> KafkaKit:
    add_kafka(spark)
    return KafkaKit(topics)
