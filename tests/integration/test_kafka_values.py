"""Values of records that a reader of a format would change or lose in silence, on a real Kafka."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.text.errors import SqlError
from tests.contract.suite import inline
from tests.kafka_support import add_kafka
from tests.kafka_tables import BATCH, COPY, STREAM, Tables, values
from tests.servers.kafka import Topics
from tests.servers.kafka_client import Record

LIMIT = "SET job.error.limit.rows = 100;\n"
WRITE = "INSERT INTO dst SELECT * FROM given"
MORE = [
    *('{"id": 1}{"id": 2}', '{"id": 1} {"id": 2}', '{"id": 1}\n{"id": 2}', '{"id": 1}, {"id": 2}'),
    *('{"id": 1} trailing', '{"id": 1}}', '{"id": 1}]', '{"id": 1}}, "id": 2}', '{"id": 1}, 5', '{"id": 1},'),
    *(
        '{"id": 1}, "more": {"id": 2}',
        '{"id": 1}, {"id": 2}]',
        '{"id": 1}], [{"id": 2}',
        '{"id": 1}, {"id": 2}],{}',
    ),
]
"""Texts with something behind their first object."""


@pytest.fixture
def tables(spark: SparkSession, topics: Topics, tmp_path: Path) -> Tables:
    add_kafka(spark)
    return Tables(spark, topics, tmp_path)


def quarantined(tables: Tables) -> set[str]:
    (counted,) = [each for each in tables.bad_rows if each["table"] == "src"]
    return {row["record"] for row in tables.spark.read.parquet(counted["place"]).collect()}


@pytest.mark.parametrize("mode", [BATCH, STREAM])
def test_a_value_with_more_than_one_object_does_not_fit(tables: Tables, topics: Topics, mode: str) -> None:
    topic, alone = topics.new(), [' {"id": 7, "name": "}{"} \r\n\t', '{"id": 8, "name": "} , ]"}']
    topics.kafka.produce(topic, [each.encode() for each in (*MORE, *alone)])
    columns = "id BIGINT, name STRING"
    tables.run(LIMIT + mode + tables.kafka("src", columns, topic) + tables.files(columns) + COPY)
    assert tables.written() == [(7, "}{"), (8, "} , ]")]
    assert quarantined(tables) == set(MORE)


def test_a_value_with_more_than_one_object_fails_the_job(tables: Tables, topics: Topics) -> None:
    topics.kafka.produce(topic := topics.new(), [MORE[0].encode()])
    script = BATCH + tables.kafka("src", "id BIGINT", topic) + tables.files("id BIGINT") + COPY
    with pytest.raises(SqlError, match=r'offset 0: \{"id": 1\}\{"id": 2\}'):
        tables.run(script)


def test_a_key_with_more_than_one_object_does_not_fit(tables: Tables, topics: Topics) -> None:
    topic = topics.new()
    topics.kafka.produce(topic, [Record(b'{"n": 1}', key.encode()) for key in (*MORE, '{"id": 7}')])
    options = {"key_fields": "id", "key_format": "json", "value_fields_include": "except_key"}
    columns = "id BIGINT, n BIGINT"
    script = tables.kafka("src", columns, topic, **options) + tables.files(columns)
    tables.run(LIMIT + BATCH + script + COPY)
    assert tables.written() == [(7, 1)]
    assert quarantined(tables) == {f"key {key}" for key in MORE}


@pytest.mark.parametrize("mode", [BATCH, STREAM])
def test_a_number_beyond_tinyint_does_not_fit(tables: Tables, topics: Topics, mode: str) -> None:
    topic, columns = topics.new(), "a TINYINT, b ARRAY<TINYINT>"
    good: list[dict[str, Any]] = [{"a": -128, "b": [127, None]}, {"a": 127, "b": None}]
    bad = [{"a": 200}, {"a": 128}, {"a": 255}, {"a": 1, "b": [1, 200]}]
    topics.kafka.produce(topic, values(*good, *bad))
    into = tables.files("a TINYINT, b STRING")
    query = "INSERT INTO dst SELECT a, CAST(b AS STRING) FROM src"
    tables.run(LIMIT + mode + tables.kafka("src", columns, topic) + into + query)
    assert tables.written() == [(-128, "[127, null]"), (127, None)]
    assert quarantined(tables) == {json.dumps(each) for each in bad}


def test_csv_keeps_the_spaces_at_the_ends_of_texts(tables: Tables, topics: Topics) -> None:
    topic, columns = topics.new(), "a STRING, b STRING, c STRING"
    given = inline([["  x ", " ", None], [" y", "z ", "\t"]], columns)
    tables.run(BATCH + given + tables.kafka("dst", columns, topic, format="csv") + WRITE)
    assert {each.value for each in topics.kafka.records(topic)} == {b"  x , ,", b" y,z ,\t"}
    back = tables.kafka("src", columns, topic, format="csv") + tables.files(columns)
    tables.run(BATCH + back + COPY)
    assert tables.written() == [("  x ", " ", None), (" y", "z ", "\t")]


def test_csv_doubles_quotes_within_quotes(tables: Tables, topics: Topics) -> None:
    topic, columns = topics.new(), "a STRING, b STRING"
    given = inline([['x "y", z', "w"]], columns)
    tables.run(BATCH + given + tables.kafka("dst", columns, topic, format="csv") + WRITE)
    assert [each.value for each in topics.kafka.records(topic)] == [b'"x ""y"", z",w']
    back = tables.kafka("src", columns, topic, format="csv") + tables.files(columns)
    tables.run(BATCH + back + COPY)
    assert tables.written() == [('x "y", z', "w")]


@pytest.mark.parametrize("null", ["", "-"])
def test_csv_of_one_column_has_null_as_any_other(tables: Tables, topics: Topics, null: str) -> None:
    topic, options = topics.new(), {"format": "csv", "null_value": null}
    given = inline([[None], ["y"]], "a STRING")
    tables.run(BATCH + given + tables.kafka("dst", "a STRING", topic, **options) + WRITE)
    assert {each.value for each in topics.kafka.records(topic)} == {null.encode(), b"y"}
    back = tables.kafka("src", "a STRING", topic, **options) + tables.files("a STRING")
    tables.run(BATCH + back + COPY)
    assert tables.written() == [("y",), (None,)]


def test_csv_has_columns_of_any_name(tables: Tables, topics: Topics) -> None:
    topic, columns = topics.new(), "`a b` STRING, `c``,d` INT"
    tables.run(
        BATCH + inline([["x", 1]], columns) + tables.kafka("dst", columns, topic, format="csv") + WRITE
    )
    out = tables.files("a STRING, c INT")
    query = "INSERT INTO dst SELECT `a b`, `c``,d` FROM src"
    tables.run(BATCH + tables.kafka("src", columns, topic, format="csv") + out + query)
    assert tables.written() == [("x", 1)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"key_format": "raw"}, ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00.5Z")),
        (
            {"key_format": "json"},
            ('{"at":"2026-10-25T00:30:00.000000Z"}', '{"at":"2026-10-25T01:30:00.500000Z"}'),
        ),
        (
            {"key_format": "json", "timestamp_format": "SQL"},
            ('{"at":"2026-10-25 00:30:00.000000Z"}', '{"at":"2026-10-25 01:30:00.500000Z"}'),
        ),
        ({"key_format": "csv"}, ("2026-10-25T00:30:00.000000Z", "2026-10-25T01:30:00.500000Z")),
    ],
)
def test_each_time_has_one_key_in_all_zones(
    tables: Tables, topics: Topics, options: dict[str, Any], expected: tuple[str, str]
) -> None:
    """The times are one hour apart, and both are 02:30 in Berlin."""
    topic, columns = topics.new(), "at TIMESTAMP, n INT"
    given = inline([["2026-10-25T00:30:00Z", 1], ["2026-10-25T01:30:00.5Z", 2]], columns)
    table = {"key_fields": "at", "value_fields_include": "except_key", **options}
    for zone in ("UTC", "Europe/Berlin"):
        script = f"SET spark.sql.session.timeZone = '{zone}';\n" + BATCH + given
        tables.run(script + tables.kafka("dst", columns, topic, **table) + WRITE)
    found = topics.kafka.records(topic)
    keys = {each.key.decode(): each.value for each in found if each.key}
    assert (len(found), sorted(keys)) == (4, sorted(expected))
    zone = "SET spark.sql.session.timeZone = 'America/New_York';\n"
    back = tables.kafka("src", columns, topic, **table) + tables.files("at BIGINT, n INT")
    query = "INSERT INTO dst SELECT DISTINCT unix_millis(at), n FROM src"
    tables.run(zone + BATCH + back + query)
    assert tables.written() == [(1_792_888_200_000, 1), (1_792_891_800_500, 2)]
