"""The scripts of docs/connectors/kafka.md, as they are shown, on the topics of one test."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.execution.execution import execute
from tests.kafka_support import add_kafka
from tests.kafka_tables import values
from tests.servers.kafka import Topics
from tests.stream_driver import plan_of

PAGE = (Path(__file__).parents[2] / "docs" / "connectors" / "kafka.md").read_text("utf-8")
TO_FILES, MANY, AVRO, BY_KEY, TWO_WAY = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(SCHEMA,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LOGINS = re.findall(r"^```\n(CREATE TABLE .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_worked_scripts_run_without_a_warning(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    add_kafka(spark)
    servers = topics.kafka.servers

    def run(script: str) -> list[dict[str, Any]]:
        own = re.sub(r"('topic(?:-pattern)?' = ')", rf"\1{topics.prefix}", script)
        found = check_script(own, file="docs.sql", base_dir=str(tmp_path), variables={"servers": servers})
        assert found.errors == found.warnings == ()
        return execute(spark, plan_of(own, tmp_path, servers=servers), lambda _phase: None)

    topics.kafka.produce(topics.new("clicks"), values({"id": 1, "page": "home"}, b"no json"))
    assert [each["rows"] for each in run(TO_FILES)] == [1]
    assert [row.page for row in spark.read.parquet(f"{tmp_path}/pages").collect()] == ["home"]

    for shop in ("visits-a", "visits-b"):
        topics.kafka.produce(topics.new(shop), values({"page": "home"}, {"page": shop}))
    counts = topics.new("page-visits")
    run(MANY)
    found = {each.key: json.loads(each.value or b"") for each in topics.kafka.records(counts)}
    assert found.pop(b"home") == {"page": "home", "shops": 2, "visits": 2}
    assert found.keys() == {b"visits-a", b"visits-b"}

    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "click.avsc").write_text(SCHEMA, "utf-8")
    clicks = topics.new("avro-clicks")
    run(AVRO)
    assert sorted(each.value or b"" for each in topics.kafka.records(clicks)) == [
        b"\x02\x08home",
        b"\x04\x08shop",
    ]

    customers = topics.new("customers", cleanup_policy="compact")
    assert [each["rows"] for each in run(BY_KEY)] == [3]
    assert {each.key for each in topics.kafka.records(customers) if each.value is None} == {b"1"}

    both = topics.new("shop-orders"), topics.new("crm-orders")
    for number, topic in enumerate(both):
        topics.kafka.produce(topic, values({"id": number, "total": 1.5}))
    for _ in range(2):
        run(TWO_WAY)
    for topic in both:
        assert sorted(json.loads(each.value or b"")["id"] for each in topics.kafka.records(topic)) == [0, 1]


@pytest.mark.parametrize("script", LOGINS, ids=["password", "certificate"])
def test_the_tables_with_logins_are_right(script: str) -> None:
    found = check_script(f"{script}TABLE orders", file="docs.sql", base_dir="/", variables={})
    assert found.errors == ()
