"""Topics of upserts, as other engines declare them: values and deletes by key."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.contract.suite import inline
from tests.kafka_support import add_kafka
from tests.kafka_tables import BATCH, Tables
from tests.servers.kafka import Topics

INSERT = "INSERT INTO dst SELECT * FROM given ORDER BY at"
COLUMNS = "id BIGINT, name STRING, at INT, gone BOOLEAN"
ROWS: list[list[Any]] = [[1, "one", 1, False], [2, "two", 2, None], [1, None, 3, True]]
FLINK = """'connector' = 'upsert-kafka', 'topic' = '{topic}', 'key.format' = 'json',
  'properties.bootstrap.servers' = '{servers}', 'properties.linger.ms' = '5', 'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY', 'sink.parallelism' = '1', 'sink.buffer-flush.max-rows' = '100',
  'sink.buffer-flush.interval' = '1s', 'delete_column' = 'gone'"""
FIRST_FLINK = """'connector.type' = 'kafka', 'connector.version' = 'universal-upsert',
  'connector.topic' = '{topic}', 'connector.properties.bootstrap.servers' = '{servers}',
  'format.type' = 'json', 'key_format' = 'json', 'value_fields_include' = 'except_key',
  'delete_column' = 'gone'"""


@pytest.mark.parametrize("options", [FLINK, FIRST_FLINK], ids=["upsert-kafka", "universal-upsert"])
def test_a_row_is_a_value_of_its_key_and_a_delete_is_a_record_without_one(
    spark: SparkSession, topics: Topics, tmp_path: Path, options: str
) -> None:
    add_kafka(spark)
    topic = topics.new(cleanup_policy="compact")
    given = options.format(topic=topic, servers=topics.kafka.servers)
    table = f"CREATE TABLE dst ({COLUMNS}, PRIMARY KEY (id) NOT ENFORCED) WITH ({given});\n"
    tables = Tables(spark, topics, tmp_path)
    (result,) = tables.run(BATCH + inline(ROWS, COLUMNS) + table + INSERT)
    assert result["rows"] == 3
    assert [(each.key, each.value) for each in topics.kafka.records(topic)] == [
        (b'{"id":1}', b'{"name":"one","at":1}'),
        (b'{"id":2}', b'{"name":"two","at":2}'),
        (b'{"id":1}', None),
    ]
