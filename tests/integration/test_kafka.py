"""Topics of a real Kafka as tables: formats, keys, headers, positions, records that do not fit, lag."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.contract.suite import inline
from tests.kafka_support import add_kafka
from tests.kafka_tables import BATCH, COPY, STREAM, Tables, values
from tests.servers.kafka import Topics
from tests.servers.kafka_client import Record

LAST = "INSERT INTO dst SELECT * FROM given"


@pytest.fixture
def tables(spark: SparkSession, topics: Topics, tmp_path: Path) -> Tables:
    add_kafka(spark)
    return Tables(spark, topics, tmp_path)


@pytest.mark.parametrize("kind", ["json", "csv", "avro"])
def test_types_survive_a_format_there_and_back(tables: Tables, topics: Topics, kind: str) -> None:
    topic = topics.new()
    columns = "id BIGINT, price DECIMAL(10,2), at TIMESTAMP, day DATE, ok BOOLEAN, name STRING"
    rows: list[list[Any]] = [
        [1, 1.25, "2026-11-01T10:00:00.123456Z", "2026-11-01", True, 'a;"b",ü'],
        [2] + [None] * 5,
    ]
    given = inline(rows, columns)
    kafka = tables.kafka("dst", columns, topic, format=kind)
    assert tables.run(BATCH + given + kafka + LAST)[0]["rows"] == 2
    back = tables.kafka("src", columns, topic, format=kind) + tables.files(columns)
    tables.run(BATCH + back + COPY)
    tables.run(BATCH + given + f"CREATE TABLE dst ({columns}) USING parquet OPTIONS (path 'ref');\n" + LAST)
    expected = tables.spark.read.parquet(f"{tables.folder}/ref").collect()
    assert tables.written() == sorted(map(tuple, expected), key=str)


def test_keys_headers_and_the_topic_of_each_row_are_written_and_read(tables: Tables, topics: Topics) -> None:
    one, other = topics.new("one"), topics.new("other")
    columns = "id BIGINT, body STRING, tags MAP<STRING, STRING>, place STRING"
    rows = json.dumps([[1, "a", {"x": "1"}, one], [2, "b", {}, other], [3, "c", None, None]])
    given = f"CREATE TABLE given ({columns}) USING inline OPTIONS (rows '{rows}');\n"
    options = {"format": "raw", "key_fields": "id", "headers_column": "tags", "topic_column": "place"}
    tables.run(BATCH + given + tables.kafka("dst", columns, one, **options) + LAST)
    found = sorted(topics.kafka.records(one), key=lambda each: each.key or b"")
    assert [(each.key, each.value, dict(each.headers)) for each in found] == [
        (b"1", b"a", {"x": b"1"}),
        (b"3", b"c", {}),
    ]
    assert [each.value for each in topics.kafka.records(other)] == [b"b"]
    both = tables.kafka("src", columns, f"{one},{other}", **options)
    tables.run(
        BATCH
        + both
        + tables.files("id BIGINT, body STRING, place STRING")
        + COPY.replace("*", "id, body, place")
    )
    assert tables.written() == [(1, "a", one), (2, "b", other), (3, "c", one)]


def test_metadata_columns_have_what_kafka_keeps_of_a_record(tables: Tables, topics: Topics) -> None:
    topic = topics.new(partitions=2)
    topics.kafka.produce(topic, [Record(b'{"id": 1}', b"k", {"h": b"v"}, 1, timestamp_ms=1_793_491_200_000)])
    columns = """id BIGINT, k STRING METADATA FROM 'key',
      p INT METADATA FROM 'partition',
      o BIGINT METADATA FROM 'offset',
      at BIGINT METADATA FROM 'timestamp', h MAP<STRING, STRING> METADATA FROM 'headers'"""
    into = tables.files("id BIGINT, k STRING, p INT, o BIGINT, at BIGINT, h STRING")
    script = tables.kafka("src", columns, topic) + into
    tables.run(STREAM + script + "INSERT INTO dst SELECT id, k, p, o, at, h['h'] FROM src")  # noqa: S608 - of constants
    assert tables.written() == [(1, "k", 1, 0, 1_793_491_200, "v")]


@pytest.mark.parametrize("mode", [BATCH, STREAM])
def test_records_that_do_not_fit_go_to_the_quarantine_with_their_text(
    tables: Tables, topics: Topics, mode: str, spark: SparkSession
) -> None:
    topic = topics.new()
    unlike = [b"no json", {"id": "x"}, b"", b" ", b"[]", [{"id": 2}, {"id": 3}]]
    topics.kafka.produce(topic, values({"id": 1}, *unlike, {"id": 4}))
    script = "SET job.error.limit.rows = 10;\n" + tables.kafka("src", "id BIGINT", topic)
    (result,) = tables.run(mode + script + tables.files("id BIGINT") + COPY)
    assert result["rows"] == 2
    assert tables.written() == [(1,), (4,)]
    (counted,) = [each for each in tables.bad_rows if each["table"] == "src"]
    assert (counted["rows"], counted["quarantined"]) == (8, 6)
    records = {row["record"] for row in spark.read.parquet(counted["place"]).collect()}
    assert records == {"no json", '{"id": "x"}', "", " ", "[]", '[{"id": 2}, {"id": 3}]'}


@pytest.mark.parametrize("mode", [BATCH, STREAM])
def test_keys_that_do_not_fit_go_to_the_quarantine_and_stop_no_stream(
    tables: Tables, topics: Topics, mode: str, spark: SparkSession
) -> None:
    topic, sent = topics.new(), [(b"1", {"n": 1}), (b"one", {"n": 2}), (b"3", {"n": 3})]
    topics.kafka.produce(topic, [Record(json.dumps(value).encode(), key) for key, value in sent])
    keys = {"key_fields": "id", "value_fields_include": "except_key"}
    columns = "id BIGINT, n BIGINT"
    script = tables.kafka("src", columns, topic, **keys) + tables.files(columns)
    tables.run("SET job.error.limit.rows = 10;\n" + mode + script + COPY)
    assert tables.written() == [(1, 1), (3, 3)]
    (counted,) = [each for each in tables.bad_rows if each["table"] == "src"]
    records = {row["record"] for row in spark.read.parquet(counted["place"]).collect()}
    assert records == {"key one"}


@pytest.mark.parametrize("mode", [BATCH, STREAM])
def test_ignored_records_are_left_out_and_counted(tables: Tables, topics: Topics, mode: str) -> None:
    topic = topics.new()
    topics.kafka.produce(topic, [*values({"id": 1}, b"no json", {"id": 4}), Record(None, b"a tombstone")])
    script = tables.kafka("src", "id BIGINT", topic, ignore_parse_errors=True) + tables.files("id BIGINT")
    tables.run(mode + script + COPY)
    assert tables.written() == [(1,), (4,)]
    assert [(each["rows"], each["dropped"]) for each in tables.bad_rows] == [(3, 1)]


def test_a_record_that_does_not_fit_fails_the_job(tables: Tables, topics: Topics) -> None:
    topic = topics.new()
    topics.kafka.produce(topic, values({"id": 1}, b"no json"))
    with pytest.raises(SqlError, match="no json"):
        tables.run(STREAM + tables.kafka("src", "id BIGINT", topic) + tables.files("id BIGINT") + COPY)
    topics.kafka.produce(other := topics.new("other"), values({"id": 1}, {"other": 2}))
    strict = tables.kafka("src", "id BIGINT", other, fail_on_missing_field=True)
    with pytest.raises(SqlError, match=r"does not fit the declared columns: topic .*other"):
        tables.run(BATCH + strict + tables.files("id BIGINT") + COPY)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"starting_offsets": "latest"}, []),
        ({"starting_offsets": "2026-11-01T00:00:01Z"}, [1, 2]),
        ({"starting_offsets": "timestamp", "starting_timestamp": 1_793_491_202_000}, [2]),
        ({"starting_offsets": "specific-offsets", "specific_offsets": "partition:0,offset:2"}, [2]),
        ({"starting_offsets": "group-offsets", "group_id": "g"}, [1, 2]),
        ({"starting_offsets": "earliest", "ending_offsets": "partition:0,offset:1"}, [0]),
    ],
)
def test_a_read_begins_and_ends_where_the_options_say(
    tables: Tables, topics: Topics, options: dict[str, Any], expected: list[int]
) -> None:
    topic = topics.new()
    base = 1_793_491_200_000  # 2026-11-01T00:00:00Z
    topics.kafka.produce(topic, [Record(b'{"id": %d}' % n, timestamp_ms=base + n * 1000) for n in range(3)])
    if "group_id" in options:
        options = {**options, "group_id": f"{topics.prefix}g"}
        topics.kafka.commit(options["group_id"], topic, 1)
    script = tables.kafka("src", "id BIGINT", topic, **options) + tables.files("id BIGINT")
    (result,) = tables.run(BATCH + script + COPY)
    assert result["rows"] == len(expected)
    assert tables.written() == [(n,) for n in expected]


def test_a_drain_is_limited_per_batch_and_shows_the_lag_of_each_partition(
    tables: Tables, topics: Topics
) -> None:
    topic = topics.new(partitions=2)
    topics.kafka.produce(topic, [Record(b'{"id": %d}' % n, partition=n % 2) for n in range(6)])
    shown: list[Any] = []
    control = StreamControl(lambda: shown.append(control.shown()["streams"]["dst"]))
    script = tables.kafka("src", "id BIGINT", topic, max_offsets_per_trigger=2) + tables.files("id BIGINT")
    (result,) = tables.run(STREAM + script + COPY, control)
    assert (result["rows"], result["batches"]) == (6, 3)
    lags = [each["lag"] for each in shown if "lag" in each]
    assert [each["records"] for each in lags][:2] == [4, 2]  # the last trigger may come after the end
    assert lags[0]["partitions"] == {f"{topic}-0": 2, f"{topic}-1": 2}


def test_a_setting_of_the_client_replaces_the_number_of_records_in_a_poll(
    tables: Tables, topics: Topics
) -> None:
    topics.kafka.produce(topic := topics.new(), [b'{"id": 1}'])
    options = {"properties.max.poll.records": "0"}
    script = BATCH + tables.kafka("src", "id BIGINT", topic, **options) + tables.files("id BIGINT") + COPY
    with pytest.raises(SqlError, match=r"value 0 for configuration max\.poll\.records"):
        tables.run(script)


def test_a_preview_shows_the_last_records(tables: Tables, topics: Topics) -> None:
    topic = topics.new()
    topics.kafka.produce(topic, values(*({"id": n} for n in range(3))))
    assert tables.preview(tables.kafka("src", "id BIGINT", topic), "src") == [["0"], ["1"], ["2"]]


def test_a_compacted_topic_is_read_with_its_deletes(tables: Tables, topics: Topics) -> None:
    topic = topics.new(cleanup_policy="compact")
    topics.kafka.produce(topic, [Record(b'{"id": 1, "n": 5}', b"1"), Record(None, b"1")])
    columns = "id BIGINT, n INT, gone BOOLEAN"
    script = tables.kafka("src", columns, topic, key_fields="id", delete_column="gone") + tables.files(
        columns
    )
    tables.run(BATCH + script + COPY)
    assert tables.written() == [(1, 5, False), (1, None, True)]


def test_records_lost_before_they_were_read_fail_the_job_unless_it_accepts_that(
    tables: Tables, topics: Topics
) -> None:
    topic = topics.new()
    topics.kafka.produce(topic, values(*({"id": n} for n in range(4))))
    script: Callable[..., str] = lambda **more: (  # noqa: E731 - two uses
        STREAM + tables.kafka("src", "id BIGINT", topic, **more) + tables.files("id BIGINT") + COPY
    )
    tables.run(script(ending_offsets="latest"))
    topics.kafka.produce(topic, values(*({"id": n} for n in range(4, 8))))
    topics.kafka.delete_records(topic, 6)
    with pytest.raises(SqlError, match="may have been lost"):
        tables.run(script())
