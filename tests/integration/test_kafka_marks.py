"""Two-way topics: a job passes over the records that it has written itself, by their mark."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.kafka.marks import PREFIX, without_marked
from tests.kafka_support import add_kafka
from tests.kafka_tables import BATCH, COPY, STREAM, Tables, values
from tests.servers.kafka import Topics
from tests.servers.kafka_client import Record

ID = "id BIGINT"
MARK = f"{PREFIX}crm"
ROUNDS = 2
ADD = "INSERT INTO both SELECT id + 100 FROM both"
TWO_INSERTS = "INSERT INTO both SELECT id FROM orders; INSERT INTO dst SELECT id FROM both"
LAST = "INSERT INTO dst SELECT * FROM given"


@pytest.fixture
def tables(spark: SparkSession, topics: Topics, tmp_path: Path) -> Tables:
    add_kafka(spark)
    return Tables(spark, topics, tmp_path)


def ids(topics: Topics, topic: str) -> list[Any]:
    return sorted(json.loads(each.value)["id"] for each in topics.kafka.records(topic) if each.value)


@pytest.mark.parametrize("mode", [BATCH, STREAM])
def test_records_with_exactly_this_mark_are_left_out(tables: Tables, topics: Topics, mode: str) -> None:
    topic = topics.new()
    headers: list[dict[str, bytes]] = [
        {},
        {"a": b"b"},
        {MARK: b"crm"},
        {MARK: b""},
        {"a": b"b", MARK: b"crm", "c": b""},
        {MARK + "2": b"crm"},
        {MARK.upper(): b"crm"},
        {"mark": b"crm", PREFIX: b"crm"},
        {f"{PREFIX}erp": b"erp"},
    ]
    given = [Record(b'{"id": %d}' % n, None, each) for n, each in enumerate(headers)]
    topics.kafka.produce(topic, [*given, Record(b"no json", None, {MARK: b""})])
    script = tables.kafka("src", ID, topic, skip_mark="other, crm") + tables.files(ID) + COPY
    (result,) = tables.run(mode + script)
    assert result["rows"] == 6
    assert tables.written() == [(n,) for n in (0, 1, 5, 6, 7, 8)]
    assert sum(each["rows"] for each in tables.bad_rows) in {0, 6}, "no read that is left out is counted"


def test_without_the_option_a_read_has_no_filter(spark: SparkSession) -> None:
    frame = spark.range(1)
    assert without_marked(frame, {}) is frame
    assert without_marked(frame, {"skip_mark": []}) is frame


def mirror(tables: Tables, here: str, there: str, name: str, **skips: str) -> None:
    """Copy what is new in a topic to another one, under the name of this job."""
    source = tables.kafka("src", ID, here, **skips)
    tables.run(STREAM + source + tables.kafka("dst", ID, there, mark=name) + COPY)


def test_two_jobs_that_mirror_two_topics_copy_each_record_once(tables: Tables, topics: Topics) -> None:
    one, two = topics.new("one"), topics.new("two")
    folder = tables.folder
    for number in range(ROUNDS):
        topics.kafka.produce(one, values({"id": 10 + number}))
        topics.kafka.produce(two, values({"id": 20 + number}))
        tables.folder = folder / "one"
        mirror(tables, one, two, "to-two", skip_mark="to-one")
        tables.folder = folder / "two"
        mirror(tables, two, one, "to-one", skip_mark="to-two")
    assert ids(topics, one) == ids(topics, two) == [10, 11, 20, 21]


def test_without_marks_they_copy_their_own_records_for_ever(tables: Tables, topics: Topics) -> None:
    one, two = topics.new("one"), topics.new("two")
    topics.kafka.produce(one, values({"id": 1}))
    folder = tables.folder
    for _ in range(ROUNDS):
        for here, there in ((one, two), (two, one)):
            tables.folder = folder / here
            mirror(tables, here, there, "m")
    assert ids(topics, one) == [1] * (ROUNDS + 1)


@pytest.mark.parametrize("mode", [BATCH, STREAM])
def test_a_job_adds_to_the_topic_that_it_reads(tables: Tables, topics: Topics, mode: str) -> None:
    topic = topics.new()
    both = tables.kafka("both", ID, topic, mark="crm", skip_mark="crm")
    for number in (1, 2):
        topics.kafka.produce(topic, values({"id": number}))
        (result,) = tables.run(f"{mode}{both}{ADD}")
        assert result["rows"] == (number if mode == BATCH else 1)
    assert ids(topics, topic) == ([1, 2, 101, 101, 102] if mode == BATCH else [1, 2, 101, 102])


def test_one_job_reads_and_writes_a_topic_in_two_inserts(tables: Tables, topics: Topics) -> None:
    topic, orders = topics.new(), topics.new("orders")
    topics.kafka.produce(topic, values({"id": 1}))
    topics.kafka.produce(orders, values({"id": 2}))
    script = (
        STREAM
        + tables.kafka("both", ID, topic, mark="crm", skip_mark="crm")
        + tables.kafka("orders", ID, orders)
        + tables.files(ID)
        + TWO_INSERTS
    )
    for _ in range(2):
        tables.run(script)
    assert ids(topics, topic) == [1, 2]
    assert tables.written() == [(1,)]


def test_a_mark_is_added_to_the_headers_of_a_row_and_to_a_delete(tables: Tables, topics: Topics) -> None:
    topic = topics.new()
    columns = "id BIGINT, tags MAP<STRING, STRING>, gone BOOLEAN"
    rows = [[1, {"a": "b", f"{PREFIX}erp": "erp", MARK: "old"}, False], [2, None, False], [3, {}, True]]
    options = {"key_fields": "id", "headers_column": "tags", "delete_column": "gone", "mark": "crm"}
    target = tables.kafka("dst", columns, topic, **options)
    given = f"CREATE TABLE given ({columns}) USING inline OPTIONS (rows '{json.dumps(rows)}');\n"
    tables.run(BATCH + given + target + LAST)
    found = {each.key: each for each in topics.kafka.records(topic)}
    assert sorted(found[b"1"].headers.items()) == [("a", b"b"), (MARK, b"crm"), (f"{PREFIX}erp", b"erp")]
    assert [dict(found[key].headers) for key in (b"2", b"3")] == [{MARK: b"crm"}] * 2
    assert found[b"3"].value is None


def test_in_a_ring_of_three_a_record_ends_before_the_topic_of_its_origin(
    tables: Tables, topics: Topics
) -> None:
    columns = f"{ID}, tags MAP<STRING, STRING>"
    ring = [topics.new(each) for each in "abc"]
    folder = tables.folder
    for number, topic in enumerate(ring):
        topics.kafka.produce(topic, values({"id": number}))
    for _ in range(ROUNDS):
        for here, there in zip(ring, [*ring[1:], ring[0]], strict=True):
            tables.folder = folder / here
            source = tables.kafka("src", columns, here, headers_column="tags", skip_mark=there)
            target = tables.kafka("dst", columns, there, headers_column="tags", mark=here)
            tables.run(STREAM + source + target + COPY)
    assert [ids(topics, topic) for topic in ring] == [[0, 1, 2]] * len(ring)


def test_a_preview_leaves_them_out(tables: Tables, topics: Topics) -> None:
    topics.kafka.produce(topic := topics.new(), [Record(b'{"id": 1}', None, {MARK: b""}), b'{"id": 2}'])
    assert tables.preview(tables.kafka("src", ID, topic, skip_mark="crm"), "src") == [["2"]]
