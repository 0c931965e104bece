"""Streams that start again behind a change of their topics or of their consumer group, on a real Kafka."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.kafka.client import brokers
from spark_runner.connectors.options import to_plan, validate
from spark_runner.sql.text.errors import SqlError
from tests.kafka_support import add_kafka
from tests.kafka_tables import COPY, STREAM, Tables, values
from tests.servers.kafka import Topics
from tests.waiting import wait_until

IGNORING = {"ignore_parse_errors": True}


@pytest.fixture
def tables(spark: SparkSession, topics: Topics, tmp_path: Path) -> Tables:
    add_kafka(spark)
    return Tables(spark, topics, tmp_path)


def script(tables: Tables, topic: str, **options: Any) -> str:
    return STREAM + tables.kafka("src", "id BIGINT", topic, **options) + tables.files("id BIGINT") + COPY


def create_anew(tables: Tables, topics: Topics, topic: str) -> None:
    """Delete a topic, and create one of the same name."""
    options = to_plan(validate("kafka", {"bootstrap_servers": topics.kafka.servers, "topic": topic}, ("id",)))
    with brokers(tables.spark, options) as found:
        before = found.ids([topic])[topic]
        topics.kafka.delete(topic)
        wait_until(lambda: topic not in found.ids([topic], are_listed=True), 30, "the topic is gone")
        topics.kafka.create(topic)
        wait_until(
            lambda: found.ids([topic], are_listed=True).get(topic, before) != before, 30, "it is created anew"
        )


@pytest.mark.parametrize("options", [{}, IGNORING], ids=["strict", "ignoring"])
def test_a_stream_starts_again_without_the_group_at_whose_position_it_began(
    tables: Tables, topics: Topics, options: dict[str, Any]
) -> None:
    topic, group = topics.new(), f"{topics.prefix}g"
    topics.kafka.produce(topic, values(*({"id": n} for n in range(3))))
    topics.kafka.commit(group, topic, 1)
    text = script(tables, topic, starting_offsets="group-offsets", group_id=group, **options)
    tables.run(text)
    topics.kafka.delete_group(group)
    topics.kafka.produce(topic, values({"id": 9}))
    tables.run(text)
    assert tables.written() == [(1,), (2,), (9,)]


def test_a_stream_that_has_not_begun_needs_the_position_of_its_group(tables: Tables, topics: Topics) -> None:
    topic, group = topics.new(), f"{topics.prefix}g"
    topics.kafka.produce(topic, values({"id": 1}))
    text = script(tables, topic, starting_offsets="group-offsets", group_id=group)
    with pytest.raises(SqlError, match=f"2:1: table 'src': consumer group '{group}' has stored no position"):
        tables.run(text)


@pytest.mark.parametrize("options", [{}, IGNORING], ids=["strict", "ignoring"])
def test_a_topic_that_was_created_anew_fails_its_stream_before_it_loses_records(
    tables: Tables, topics: Topics, options: dict[str, Any]
) -> None:
    topic = topics.new()
    topics.kafka.produce(topic, values(*({"id": n} for n in range(3))))
    text = script(tables, topic, **options)
    tables.run(text)
    tables.run(text)
    create_anew(tables, topics, topic)
    topics.kafka.produce(topic, values(*({"id": n} for n in range(100, 105))))
    words = re.escape(f"2:1: table 'src': topic '{topic}' was created anew since") + ".* --fresh "
    for _ in range(2):
        with pytest.raises(SqlError, match=words):
            tables.run(text)
    assert tables.written() == [(0,), (1,), (2,)]
    tables.run(text, checkpoint={"start": "fresh", "run_key": "another"})
    assert tables.written() == sorted(((n,) for n in (0, 1, 2, *range(100, 105))), key=str)


def test_a_stream_that_accepts_losses_goes_on_in_a_topic_that_was_created_anew(
    tables: Tables, topics: Topics
) -> None:
    topic = topics.new()
    topics.kafka.produce(topic, values(*({"id": n} for n in range(3))))
    text = script(tables, topic, fail_on_data_loss=False)
    tables.run(text)
    create_anew(tables, topics, topic)
    topics.kafka.produce(topic, values(*({"id": n} for n in range(100, 105))))
    tables.run(text)
    assert tables.written() == [(0,), (1,), (103,), (104,), (2,)]
