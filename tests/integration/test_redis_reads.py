"""What a read of Redis returns, on real servers: bytes, odd keys, hashes, and slots that move meanwhile."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from queues.embedded.ports import free_ports
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.redis.options import RedisOptions
from spark_runner.connectors.redis.scan import ValueReader
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.integration.test_redis import table
from tests.servers.redis import RedisServer, local_redis, local_redis_node, moving_slot
from tests.stream_driver import plan_of

COPY = """CREATE TABLE copy WITH ('connector' = 'parquet', 'path' = 'copy');
INSERT OVERWRITE copy SELECT * FROM t ORDER BY ALL;
"""


def copied(
    spark: SparkSession, folder: Path, columns: str, options: Mapping[str, str], before: str = ""
) -> list[Row]:
    """The rows of a table `t` that statements wrote before, or anyone else."""
    text = table("t", options, f"({columns})") + before + COPY
    execute(spark, plan_of(text, folder), lambda _: None)
    return spark.read.parquet(str(folder / "copy")).collect()


@pytest.mark.parametrize("command", ["SET", "HSET", "RPUSH", "SADD", "ZADD", "XADD"])
def test_bytes_come_back_as_they_were_written(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path, command: str
) -> None:
    options = {**redis_server.options, "command": command, "key": f"{redis_keys}:{{k}}"}
    options |= {} if command in {"HSET", "XADD"} else {"value": "{value}"}
    options |= {"score": "score"} if command == "ZADD" else {}
    number = ", score DOUBLE" if command == "ZADD" else ""
    insert = f"INSERT INTO t SELECT 'a', X'FF00FE41'{', 1.5D' if number else ''};\n"
    rows = copied(spark, tmp_path, f"k STRING, value BINARY{number}", options, insert)
    assert [(row.k, bytes(row.value)) for row in rows] == [("a", b"\xff\x00\xfe\x41")]


@pytest.mark.parametrize("columns", ["key STRING", "k STRING", "value STRING", "value INT"])
def test_bytes_that_are_no_text_fail_a_read_of_texts(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path, columns: str
) -> None:
    with redis_server.client() as client:
        client.set(f"{redis_keys}:".encode() + b"\xfe", b"\xff")
    key = "*" if columns == "key STRING" else "{k}"
    options = {**redis_server.options, "key": f"{redis_keys}:{key}"}
    with pytest.raises(SqlError, match=r"key '.*' of Redis has a (name|value) that is no text in UTF-8"):
        copied(spark, tmp_path, "k STRING, " * columns.startswith("value") + columns, options)


def test_parts_of_keys_may_have_any_characters(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    options = {**redis_server.options, "key": f"{redis_keys}:{{k}}", "value": "{value}"}
    insert = "INSERT INTO t VALUES ('a\\nb', 'x'), ('c\\n', 'y'), ('', 'z'), ('*[é]', 'w');\n"
    rows = copied(spark, tmp_path, "k STRING, value STRING", options, insert)
    assert {row.k: row.value for row in rows} == {"a\nb": "x", "c\n": "y", "": "z", "*[é]": "w"}


def test_the_hash_of_a_row_that_replaces_another_one_has_none_of_its_fields(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    options = {**redis_server.options, "command": "HSET", "key": f"{redis_keys}:{{k}}", "ttl": "600"}
    insert = "INSERT INTO t SELECT 'k', '1', '2'; INSERT INTO t SELECT 'k', '3', CAST(NULL AS STRING);\n"
    (row,) = copied(spark, tmp_path, "k STRING, a STRING, b STRING", options, insert)
    assert (row.a, row.b) == ("3", None)
    with redis_server.client() as client:
        assert client.hgetall(f"{redis_keys}:k") == {"a": "3"}


def test_a_hash_without_known_fields_is_a_json_object(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    with redis_server.client() as client:
        client.hset(f"{redis_keys}:a", mapping={"x": "1", 'é"': "2"})
    options = {**redis_server.options, "command": "HSET", "key": f"{redis_keys}:*"}
    (row,) = copied(spark, tmp_path, "key STRING, value STRING", options)
    assert (row.key, json.loads(row.value)) == (f"{redis_keys}:a", {"x": "1", 'é"': "2"})


def test_members_of_many_pages_are_all_read_once(
    spark: SparkSession, redis_server: RedisServer, redis_keys: str, tmp_path: Path
) -> None:
    for command in ("RPUSH", "SADD", "ZADD", "XADD"):
        options = {**redis_server.options, "command": command, "key": f"{redis_keys}:{command}"}
        options |= {"score": "score"} if command == "ZADD" else {}
        value = {} if command == "XADD" else {"value": "{value}"}
        column = ", score DOUBLE" if command == "ZADD" else ""
        query = "SELECT id, id FROM range(3000)" if column else "SELECT id FROM range(3000)"
        insert = table("s", {**options, **value}, f"(value BIGINT{column})")
        insert += f"INSERT INTO s {query};\n"
        rows = copied(spark, tmp_path, f"value BIGINT{column}", options, insert)
        assert sorted(row.value for row in rows) == list(range(3000)), command


def in_cluster(nodes: list[str], **more: Any) -> dict[str, Any]:
    return RedisOptions(mode="cluster", nodes=tuple(nodes), **{"key": "r:*", **more}).model_dump()


def test_a_read_fails_for_now_if_a_slot_moves_meanwhile(redis_cluster: list[str]) -> None:
    key = "r:moved"
    reader = ValueReader(in_cluster(redis_cluster))
    parts = reader.partitions()
    with moving_slot(redis_cluster, key) as slot:
        slot.owner.set(key, "1")
        slot.begin()
        with pytest.raises(Unreachable, match="moves keys from one master to another"):
            [list(reader.read(part)) for part in parts]
        with pytest.raises(Unreachable, match="moves keys from one master to another"):
            reader.partitions()
        slot.move(key)
        slot.end()
        with pytest.raises(Unreachable, match="has moved slots while they were read"):
            [list(reader.read(part)) for part in parts]
        found = [each for part in reader.partitions() for batch in reader.read(part) for each in batch["key"]]
        assert [each.as_py() for each in found] == [key.encode()]
        slot.other.delete(key)


def test_a_cluster_that_is_away_is_none_or_refuses_is_named(spark: SparkSession, tmp_path: Path) -> None:
    def fails(match: str, kind: type[Exception], port: int, **more: str) -> None:
        options = {
            "mode": "cluster",
            "nodes": f"127.0.0.1:{port}",
            "key": "k:*",
            "retry_timeout": "0",
            **more,
        }
        with pytest.raises(SqlError, match=match) as found:
            copied(spark, tmp_path, "value STRING", options)
        assert type(found.value.__cause__) is kind

    fails("cluster at .* does not answer", Unreachable, free_ports("127.0.0.1", 1)[0])
    with local_redis() as server:
        fails("is no cluster: use another 'mode'", ConnectorError, server.port)
    with local_redis_node("--requirepass", "open sesame") as server:
        fails("refused: .*check options 'username'", ConnectorError, server.port)
        password = {"password": "open sesame"}
        fails("cluster at .* (does not answer|failed)", Unreachable, server.port, **password)
