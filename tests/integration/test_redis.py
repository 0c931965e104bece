"""Tables in Redis, on real servers: alone, in a cluster, and behind a Sentinel."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from redis.cluster import RedisCluster

from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.servers.redis import RedisServer, local_redis
from tests.stream_driver import plan_of

ROWS = """CREATE TABLE src (page STRING, views BIGINT, price DECIMAL(10,2), at TIMESTAMP) WITH (
  'connector' = 'inline', 'rows' = '[["home", 3, 1.50, "2026-01-02 03:04:05"],
    ["shop", 1, null, "2026-01-03 00:00:00"], ["héllo {x}", 7, 0.01, "2026-01-04 00:00:00"]]');
"""
COPY = """INSERT INTO dst SELECT * FROM src;
CREATE TABLE copy WITH ('connector' = 'json', 'path' = 'copy');
INSERT INTO copy SELECT * FROM dst;
"""
MANY = "INSERT INTO dst SELECT id FROM range(5000);"


def table(name: str, options: Mapping[str, str], columns: str = "") -> str:
    given = {"connector": "redis", **options}.items()
    listed = ", ".join(f"'{option}' = '{value}'" for option, value in given)
    return f"CREATE TABLE {name} {columns} WITH ({listed});\n"


def run(spark: SparkSession, text: str, folder: Path) -> list[dict[str, Any]]:
    return execute(spark, plan_of(text, folder), lambda _: None)


def write(
    spark: SparkSession, folder: Path, options: Mapping[str, str], query: str = "SELECT * FROM src"
) -> int:
    (result,) = run(spark, ROWS + table("dst", options) + f"INSERT INTO dst {query};", folder)
    return int(result["rows"])


def test_strings_are_json_objects_by_default(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    options = {**redis_server.options, "key": f"{redis_keys}:{{page}}"}
    assert write(spark, tmp_path, options) == 3
    with redis_server.client() as client:
        home = json.loads(str(client.get(f"{redis_keys}:home")))
        assert (home["page"], home["views"], home["price"]) == ("home", 3, 1.5)
        assert client.exists(f"{redis_keys}:héllo {{x}}")
        assert client.ttl(f"{redis_keys}:home") == -1


@pytest.mark.parametrize("command", ["LPUSH", "RPUSH"])
def test_lists_grow_at_their_end_and_expire(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path, command: str
) -> None:
    options = {
        **redis_server.options,
        "command": command,
        "key": redis_keys,
        "value": "{page}={views}",
        "ttl": "500",
    }
    query = "SELECT * FROM src WHERE page != 'shop' ORDER BY page DESC"
    assert write(spark, tmp_path, options, query) == 2
    in_order = ["héllo {x}=7", "home=3"]
    with redis_server.client() as client:
        assert client.lrange(redis_keys, 0, -1) == (in_order if command == "RPUSH" else in_order[::-1])
        assert 0 < client.ttl(redis_keys) <= 500


def test_hashes_have_a_field_for_each_column_without_null(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    options = {**redis_server.options, "command": "hset", "key": f"{redis_keys}:{{page}}", "ttl": "60"}
    for _ in range(2):  # the same rows again change nothing
        assert write(spark, tmp_path, options, "SELECT page, views, price FROM src") == 3
    with redis_server.client() as client:
        assert client.hgetall(f"{redis_keys}:home") == {"views": "3", "price": "1.50"}
        assert client.hgetall(f"{redis_keys}:shop") == {"views": "1"}
        assert client.ttl(f"{redis_keys}:shop") > 0


def test_a_hash_can_have_a_field_for_each_row(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    options = {
        **redis_server.options,
        "command": "HSET",
        "key": redis_keys,
        "field": "{page}",
        "value": "{views}",
    }
    assert write(spark, tmp_path, options) == 3
    with redis_server.client() as client:
        assert client.hgetall(redis_keys) == {"home": "3", "shop": "1", "héllo {x}": "7"}


def test_sets_sorted_sets_and_streams(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    server = redis_server.options
    write(spark, tmp_path, {**server, "command": "SADD", "key": f"{redis_keys}:s", "value": "{page}"})
    scored = {**server, "command": "ZADD", "key": f"{redis_keys}:z", "value": "{page}", "score": "views"}
    write(spark, tmp_path, scored)
    write(spark, tmp_path, {**server, "command": "XADD", "key": f"{redis_keys}:x", "max_length": "1000"})
    with redis_server.client() as client:
        assert client.smembers(f"{redis_keys}:s") == {"home", "shop", "héllo {x}"}
        assert client.zrange(f"{redis_keys}:z", 0, -1, withscores=True) == [
            ("shop", 1.0),
            ("home", 3.0),
            ("héllo {x}", 7.0),
        ]
        entries = [fields for _, fields in client.xrange(f"{redis_keys}:x")]
        assert {"page": "shop", "views": "1", "at": "2026-01-03 00:00:00"} in entries


@pytest.mark.parametrize("command", ["SET", "HSET", "LPUSH", "SADD"])
def test_rows_come_back_as_they_were_written(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path, command: str
) -> None:
    options = {**redis_server.options, "command": command, "key": f"{redis_keys}:{{page}}"}
    columns = "(page STRING, views BIGINT, price DECIMAL(10,2), at TIMESTAMP)"
    text = ROWS + table("dst", options, columns) + COPY
    assert [each["rows"] for each in run(spark, text, tmp_path)] == [3, 3]
    found = spark.read.schema(columns.strip("()")).json(str(tmp_path / "copy")).orderBy("views").collect()
    assert [(row.page, row.views, str(row.price), str(row.at.year)) for row in found] == [
        ("shop", 1, "None", "2026"),
        ("home", 3, "1.50", "2026"),
        ("héllo {x}", 7, "0.01", "2026"),
    ]


def test_a_cluster_gets_each_key_at_its_master(
    spark: SparkSession, redis_cluster: list[str], tmp_path: Path
) -> None:
    options = {
        "mode": "cluster",
        "nodes": redis_cluster[0],
        "key": "many:{id}",
        "value": "{id}",
        "command": "LPUSH",
        "ttl": "600",
    }
    text = table("dst", options, "(id BIGINT)") + MANY
    text += table("back", {**options, "key": "many:*", "value": ""}, "(key STRING, value STRING)")
    text += COPY.partition(";")[2].replace("dst", "back")
    assert [each["rows"] for each in run(spark, text, tmp_path)] == [5000, 5000]
    copy = spark.read.json(str(tmp_path / "copy"))
    assert copy.where("key = concat('many:', value)").select("value").distinct().count() == 5000
    host, _, port = redis_cluster[0].rpartition(":")
    with RedisCluster(host=host, port=int(port)) as cluster:
        assert all(node.redis_connection.dbsize() > 1000 for node in cluster.get_primaries())


def test_a_sentinel_names_the_server(
    spark: SparkSession, redis_sentinel: str, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    options = {
        "mode": "sentinel",
        "nodes": redis_sentinel,
        "master_name": "main",
        "key": redis_keys,
        "value": "x",
    }
    assert write(spark, tmp_path, options) == 3
    with redis_server.client() as client:
        assert client.get(redis_keys) == "x"
    with pytest.raises(SqlError, match="no Sentinel knows a master 'other'") as found:
        write(spark, tmp_path, {**options, "master_name": "other"})
    assert isinstance(found.value.__cause__, Unreachable)


def test_rows_that_redis_rejects_are_set_aside_and_the_others_written(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    with redis_server.client() as client:
        client.set(f"{redis_keys}:shop", "no list")
    options = {
        **redis_server.options,
        "command": "LPUSH",
        "key": f"{redis_keys}:{{page}}",
        "value": "{price}",
    }
    settings = "SET job.error.limit.rows = 10; SET job.quarantine = bad;\n"
    query = "SELECT * FROM src UNION ALL SELECT 'shop', 1, 2.5, now() UNION ALL SELECT null, 1, 3, now()"
    bad = "CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');\n"
    text = settings + ROWS + bad + table("dst", options) + f"INSERT INTO dst {query};"
    results = run(spark, text, tmp_path)
    assert results[0]["rows"] == 2
    with redis_server.client() as client:
        assert client.lrange(f"{redis_keys}:home", 0, -1) == ["1.50"]
    found = spark.read.json(str(tmp_path / "bad")).collect()
    assert sorted((row.reason.partition(" ")[0], *parsed(row.record)) for row in found) == [
        ("WRONGTYPE", "shop", 2.5),
        ("a", "None", 3.0),
        ("a", "shop", 0.0),
    ]


def parsed(record: str) -> tuple[str, float]:
    row = json.loads(record)
    return str(row["page"]), float(row["price"] or 0)


def test_a_server_that_is_away_or_refuses_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with local_redis("--requirepass", "open sesame") as server:
        options = {**server.options, "key": "k", "value": "v"}
        with pytest.raises(
            SqlError, match=f"127.0.0.1:{server.port} refused: .*check options 'username'"
        ) as found:
            write(spark, tmp_path, options)
        assert isinstance(found.value.__cause__, ConnectorError)
        assert not isinstance(found.value.__cause__, Unreachable)
        assert write(spark, tmp_path, {**options, "password": "open sesame"}) == 3
    with pytest.raises(SqlError, match=f"127.0.0.1:{server.port} does not answer") as found:
        write(spark, tmp_path, options)
    assert isinstance(found.value.__cause__, Unreachable)
