"""Ids and keys of rows: different values have different ones, and no zone of a session changes them."""

import base64
import json
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import count_distinct, lit, pmod, spark_partition_id

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.elasticsearch.documents import lines
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.http.options import HttpOptions
from spark_runner.connectors.http.requests import requests
from spark_runner.connectors.pushed_rows import settings_of
from spark_runner.connectors.redis.commands import commands
from spark_runner.connectors.redis.options import RedisOptions
from spark_runner.push.settings import Order
from tests.elasticsearch_support import options

ZONES = ("Europe/Berlin", "Asia/Kathmandu")
AUTUMN = """SELECT timestamp'2026-10-25 00:30:00.123456 UTC' AS at, 'first' AS v
  UNION ALL SELECT timestamp'2026-10-25 01:30:00 UTC', 'second'"""  # both are 02:30 in Berlin
TEXTS = {"2026-10-25T00:30:00.123456Z", "2026-10-25T01:30:00Z"}


def heads(spark: SparkSession, query: str, *key: str, **more: Any) -> list[dict[str, Any]]:
    found = lines(spark.sql(query), options("http://127.0.0.1:1", **more), key).collect()
    return [json.loads(bytes(row.lines).splitlines()[0])["index"] for row in found]


def in_zone(spark: SparkSession, zone: str) -> SparkSession:
    found = spark.newSession()
    found.conf.set("spark.sql.session.timeZone", zone)
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_a_time_in_an_id_a_key_or_a_url_is_utc(spark: SparkSession, zone: str) -> None:
    session = in_zone(spark, zone)
    found = heads(session, AUTUMN, "at", routing="{at}")
    assert {each["_id"] for each in found} == {each["routing"] for each in found} == TEXTS
    given = RedisOptions(host="h", key="k:{at}", value="{at}").model_dump()
    assert {bytes(row.key).decode() for row in commands(session.sql(AUTUMN), given).collect()} == {
        f"k:{text}" for text in TEXTS
    }
    given = HttpOptions(url="http://h/items/{at}", method="PUT").model_dump()
    request = WriteRequest("append", Writer("run"), ("at",))
    rows = requests(session.sql(AUTUMN), given, request, Order.BY_KEY, tasks=1)
    paths = {row.path for row in rows.collect()}
    assert paths == {f"/items/{text.replace(':', '%3A')}" for text in TEXTS}


def test_a_time_in_a_value_is_that_of_the_session(spark: SparkSession) -> None:
    given = RedisOptions(host="h", key="k", value="{at}").model_dump()
    query = "SELECT timestamp'2026-10-25 00:30:00 UTC' AS at"
    (row,) = commands(in_zone(spark, "Europe/Berlin").sql(query), given).collect()
    assert b"2026-10-25 02:30:00\r\n" in bytes(row.command)


def test_bytes_in_an_id_are_base64(spark: SparkSession) -> None:
    query = "SELECT unhex('ff') AS k, 1 AS n UNION ALL SELECT unhex('fe'), 1"
    query += " UNION ALL SELECT unhex(repeat('00', 90)), 1"
    expected = {base64.b64encode(each).decode() for each in (b"\xff", b"\xfe", bytes(90))}
    assert {each["_id"] for each in heads(spark, query, "k")} == expected
    assert {each["_id"] for each in heads(spark, query, "k", "n")} == {f"{each}|1" for each in expected}


@pytest.mark.parametrize(
    ("value", "version"),
    [
        ("timestamp'2026-01-02 03:04:05.123457 UTC'", 1767323045123457),
        ("9007199254740993L", 9007199254740993),
        ("CAST(7 AS TINYINT)", 7),
    ],
)
def test_a_version_keeps_all_its_digits(spark: SparkSession, value: str, version: int) -> None:
    (head,) = heads(spark, f"SELECT 1 AS id, {value} AS v", "id", version_column="v")
    assert head["version"] == version


@pytest.mark.parametrize("kind", ["DOUBLE", "DECIMAL(4,1)", "STRING"])
def test_a_version_that_would_lose_digits_is_refused(spark: SparkSession, kind: str) -> None:
    with pytest.raises(ConnectorError, match=r"version_column': 'v' is .*; a version is a whole number"):
        heads(spark, f"SELECT 1 AS id, CAST(1.9 AS {kind}) AS v", "id", version_column="v")


@pytest.mark.parametrize("tasks", [3, 4, 8])
def test_the_keys_of_a_task_use_all_its_order_groups(spark: SparkSession, tasks: int) -> None:
    given = HttpOptions(url="http://h/items", concurrency=64, batch_size=10).model_dump()
    groups = settings_of(given, Order.BY_KEY, tasks, 60.0).key_groups
    request = WriteRequest("append", Writer("run"), ("id",))
    rows = requests(spark.range(100 * groups * tasks), given, request, Order.BY_KEY, tasks=tasks)
    found = rows.select(spark_partition_id().alias("task"), pmod("group", lit(groups)).alias("group"))
    counts = found.groupBy("task").agg(count_distinct("group").alias("groups")).collect()
    assert [row.groups for row in counts] == [groups] * tasks


def test_a_lane_of_a_huge_text_is_a_short_one(spark: SparkSession) -> None:
    given = HttpOptions(url="http://h/items", lane="l", body="{n}").model_dump()
    query = "SELECT n, repeat(n, 3000000) AS l FROM VALUES ('a'), ('b'), ('b') AS t(n)"
    rows = requests(spark.sql(query), given, WriteRequest("append", Writer("run")), Order.NONE, tasks=1)
    assert sorted(row.lane for row in rows.select("lane").collect()) == [n * 1000 for n in "abb"]
