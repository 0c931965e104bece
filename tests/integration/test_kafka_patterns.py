"""A pattern of topics as a source: which topics it reads, their lag, and errors that name the pattern."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.kafka.client import brokers
from spark_runner.connectors.options import to_plan, validate
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.kafka_support import add_kafka
from tests.kafka_tables import BATCH, COPY, STREAM, Tables, values
from tests.servers.kafka import Topics
from tests.servers.kafka_client import Record
from tests.stream_driver import plan_of

COLUMNS = "id BIGINT, topic STRING METADATA FROM 'topic'"


@pytest.fixture
def tables(spark: SparkSession, topics: Topics, tmp_path: Path) -> Tables:
    add_kafka(spark)
    return Tables(spark, topics, tmp_path)


@pytest.fixture
def source(tables: Tables, topics: Topics) -> Callable[..., str]:
    """A table of the topics of the test whose names begin with `page`."""

    def made(columns: str = COLUMNS, **options: Any) -> str:
        pattern = f"{topics.prefix}(page|leaf)[.]?[a-z]+"
        return tables.kafka("src", columns, "", **{"topic_pattern": pattern, **options})

    return made


def test_a_stream_reads_the_topics_that_match_and_shows_the_lag_of_each_partition(
    tables: Tables, topics: Topics, source: Callable[..., str]
) -> None:
    one, two = topics.new("page.one", partitions=2), topics.new("pagetwo")
    other = topics.new("page.one.backup")  # of which only a part matches
    topics.kafka.produce(one, [Record(b'{"id": %d}' % n, partition=n % 2) for n in range(4)])
    topics.kafka.produce(two, values({"id": 4}, {"id": 5}))
    topics.kafka.produce(other, values({"id": 9}))
    script = STREAM + source(max_offsets_per_trigger=3) + tables.files("id BIGINT, topic STRING") + COPY

    def run() -> tuple[dict[str, Any], list[Any]]:
        shown: list[Any] = []
        control = StreamControl(lambda: shown.append(control.shown()["streams"]["dst"]))
        (result,) = tables.run(script, control)
        return result, [each["lag"] for each in shown if "lag" in each]

    result, lags = run()
    assert (result["rows"], result["batches"]) == (6, 2)
    assert lags[0] == {"records": 3, "partitions": {f"{one}-0": 1, f"{one}-1": 1, f"{two}-0": 1}}
    later = topics.new("leafone")
    topics.kafka.produce(later, values(*({"id": n} for n in range(6, 10))))
    result, lags = run()
    assert (result["rows"], result["batches"]) == (4, 2)
    assert lags[0] == {"records": 1, "partitions": {f"{later}-0": 1}}
    of_topics = {one: range(4), two: (4, 5), later: range(6, 10)}
    expected = [(n, topic) for topic, numbers in of_topics.items() for n in numbers]
    assert tables.written() == sorted(expected, key=str)


def test_a_batch_reads_the_topics_that_match_from_offsets_of_one_of_them(
    tables: Tables, topics: Topics, source: Callable[..., str]
) -> None:
    one, two = topics.new("pageone"), topics.new("pagetwo")
    for topic, first in ((one, 0), (two, 10)):
        topics.kafka.produce(topic, values({"id": first}, {"id": first + 1}))
    begin = json.dumps({one: {"0": 1}})
    script = source("id BIGINT", starting_offsets=begin) + tables.files("id BIGINT")
    tables.run(BATCH + script + COPY)
    assert tables.written() == [(1,), (10,), (11,)]
    of_spark = tables.kafka("src", "id BIGINT", "", subscribePattern=f"{topics.prefix[5:]}page[a-z]")
    assert len(tables.preview(of_spark, "src")) == 4, "a part of the names matches"
    assert sorted(tables.preview(source("id BIGINT"), "src")) == [["0"], ["1"], ["10"], ["11"]]


@pytest.mark.parametrize("mode", [BATCH, STREAM])
@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("no-topic-.*", "matches 'no-topic-.*'; topic_pattern has to match whole names"),
        ("(clicks", "'(clicks' is no pattern of Java: Unclosed group"),
    ],
)
def test_a_pattern_without_topics_is_named(
    tables: Tables, topics: Topics, mode: str, pattern: str, words: str
) -> None:
    topics.new("clicks")
    table = tables.kafka("src", "id BIGINT", "", topic_pattern=pattern)
    script = mode + table + tables.files("id BIGINT") + COPY
    with pytest.raises(SqlError) as caught:
        tables.run(script)
    assert words in str(caught.value)
    if mode == BATCH:
        report = analyse_script(tables.spark, plan_of(script, tables.folder), connect=True, with_plan=False)
        assert words in str(report["errors"])


def test_a_topic_that_is_deleted_behind_the_list_is_left_out(spark: SparkSession, topics: Topics) -> None:
    add_kafka(spark)
    there, gone = topics.new(), f"{topics.prefix}gone"
    options = to_plan(validate("kafka", {"bootstrap_servers": topics.kafka.servers, "topic": there}, ("id",)))
    with brokers(spark, options) as found:
        assert found.partitions([there, gone], are_listed=True) == {there: [0]}
        with pytest.raises(ConnectorError, match=f"topic '{gone}' does not exist"):
            found.partitions([there, gone])
