"""Values of Avro by a schema from the script, from a file beside it, and from a secret."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.kafka.sink import KafkaSink
from spark_runner.connectors.options import to_plan, validate
from spark_runner.references.masks import Masks
from spark_runner.references.resolver import Resolver
from spark_runner.references.sources import Sources
from spark_runner.sql.text.errors import SqlError
from tests.contract.suite import inline
from tests.kafka_support import add_kafka
from tests.kafka_tables import BATCH, COPY, Tables
from tests.servers.kafka import Topics

COLUMNS = "page STRING, id BIGINT"
ROWS = [["a", 1], ["bc", -2]]
BYTES = [b"\x02\x02a", b"\x03\x04bc"]  # without a mark for NULL: those of SCHEMA, not of the columns
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Click",
        "namespace": "shop",
        "fields": [{"name": "id", "type": "long"}, {"name": "page", "type": "string"}],
    }
)
WRITE = "INSERT INTO dst SELECT * FROM given"


@pytest.fixture
def tables(spark: SparkSession, topics: Topics, tmp_path: Path) -> Tables:
    add_kafka(spark)
    return Tables(spark, topics, tmp_path)


@pytest.mark.parametrize(
    "option",
    [
        {"avro_schema": SCHEMA},
        {"avro_schema": "${secret:schemas/click}"},
        {"avro_schema_file": "schemas/click.avsc"},
        {"avro_schema_file": "URL"},
    ],
    ids=["text", "secret", "path", "URL"],
)
def test_values_have_the_schema_that_is_given(
    tables: Tables, topics: Topics, tmp_path: Path, option: dict[str, Any]
) -> None:
    folder = tmp_path / "schemas"
    folder.mkdir()
    (folder / "click.avsc").write_text(SCHEMA, "utf-8")
    (folder / "click").write_text(SCHEMA, "utf-8")
    if option.get("avro_schema_file") == "URL":
        option = {"avro_schema_file": (folder / "click.avsc").as_uri()}
    secrets = Resolver(Sources(secrets={"schemas": {"folder": str(folder)}}), Masks())
    topic = topics.new()
    dst = tables.kafka("dst", COLUMNS, topic, format="avro", **option)
    tables.run(BATCH + inline(ROWS, COLUMNS) + dst + WRITE, resolver=secrets)
    assert sorted(each.value or b"" for each in topics.kafka.records(topic)) == BYTES
    src = tables.kafka("src", COLUMNS, topic, format="avro", **option)
    tables.run(BATCH + src + tables.files(COLUMNS) + COPY, resolver=secrets)
    assert tables.written() == sorted(map(tuple, ROWS), key=str)


def test_a_key_of_avro_has_a_schema_of_its_own(tables: Tables, topics: Topics) -> None:
    topic = topics.new()
    value = json.dumps({**json.loads(SCHEMA), "fields": [{"name": "id", "type": "long"}]})
    options = {"format": "avro", "key_format": "avro", "key_fields": "page", "avro_schema": value}
    options["value_fields_include"] = "except_key"
    dst = tables.kafka("dst", COLUMNS, topic, **options)
    tables.run(BATCH + inline(ROWS[:1], COLUMNS) + dst + WRITE)
    (record,) = topics.kafka.records(topic)
    assert record.value == b"\x02"
    assert record.key
    assert record.key.endswith(b"\x02a")
    src = tables.kafka("src", COLUMNS, topic, **options)
    tables.run(BATCH + src + tables.files(COLUMNS) + COPY)
    assert tables.written() == [("a", 1)]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (None, "the driver finds no file 'file:{folder}/click.avsc' with the schema of Avro"),
        ("", "'file:{folder}/click.avsc' is no schema of Avro for a record"),
        ("[]", "is no schema of Avro for a record"),
        ('{"type": "enum", "name": "e", "symbols": ["A"]}', "is a schema of Avro for 'enum'"),
        (SCHEMA.replace('"page"', '"pages"'), "has no field 'page'; did you mean 'pages'?"),
        (b"\xff", "it is not in UTF-8"),
        (" " * (1 << 20) + SCHEMA, "the limit is 1,048,576"),
        (SCHEMA.replace('"long"', '"lonk"'), "lonk"),
    ],
    ids=["missing", "empty", "list", "enum", "field", "bytes", "size", "type"],
)
def test_a_wrong_schema_is_named(
    tables: Tables, topics: Topics, tmp_path: Path, schema: str | bytes | None, words: str
) -> None:
    if schema is not None:
        (tmp_path / "click.avsc").write_bytes(schema if isinstance(schema, bytes) else schema.encode())
    dst = tables.kafka("dst", COLUMNS, topics.new(), format="avro", avro_schema_file="click.avsc")
    with pytest.raises(SqlError) as caught:
        tables.run(BATCH + inline(ROWS, COLUMNS) + dst + WRITE)
    assert words.format(folder=tmp_path) in str(caught.value)


def test_a_record_whose_declared_columns_are_null_is_a_row(tables: Tables, topics: Topics) -> None:
    topic = topics.new()
    fields = [{"name": "id", "type": "long"}, {"name": "page", "type": ["null", "string"]}]
    schema = json.dumps({**json.loads(SCHEMA), "fields": fields})
    topics.kafka.produce(topic, [b"\x02\x00", b"\xff", b"\x04\x02\x02c"])
    options: dict[str, Any] = {"format": "avro", "avro_schema": schema, "ignore_parse_errors": "true"}
    src = tables.kafka("src", "page STRING", topic, **options)
    tables.run(BATCH + src + tables.files("page STRING") + COPY)
    assert sorted(map(str, tables.written())) == ["('c',)", "(None,)"]


@pytest.mark.usefixtures("tables")
def test_all_writes_of_a_sink_have_the_schema_that_the_file_had_first(
    topics: Topics, spark: SparkSession, tmp_path: Path
) -> None:
    file, topic = tmp_path / "click.avsc", topics.new()
    file.write_text(SCHEMA, "utf-8")
    given = {"bootstrap_servers": topics.kafka.servers, "topic": topic, "format": "avro"}
    options = to_plan(validate("kafka", {**given, "avro_schema_file": str(file)}, ("page", "id")))
    sink, rows = KafkaSink(), spark.createDataFrame([("a", 1)], COLUMNS)
    for batch in range(2):
        sink.write(rows, options, WriteRequest("append", Writer("run"), batch=batch))
        file.unlink(missing_ok=True)
    assert [each.value for each in topics.kafka.records(topic)] == 2 * BYTES[:1]
