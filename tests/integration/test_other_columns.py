"""Columns that a source lacks, and columns that a target lacks, where a connector reads or writes documents.

docs/connectors.md lists them for each connector.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.elasticsearch_support import Indices
from tests.servers.redis import RedisServer
from tests.servers.web import Reply, web_server
from tests.stream_driver import plan_of

RECORDS = [{"id": 1, "extra": "x"}, {"id": 2, "name": "two"}]
COLUMNS = "(id BIGINT, name STRING, lacking DOUBLE)"
KEYED = "id BIGINT, more STRING, PRIMARY KEY (id) NOT ENFORCED"
INSERT = "INSERT INTO dst VALUES (1, 'x');"
COPY = """CREATE TABLE copy WITH ('connector' = 'json', 'path' = 'copy');
INSERT INTO copy SELECT * FROM src;
"""
Run = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return lambda text: execute(spark, plan_of(text, tmp_path), lambda _: None)


@pytest.fixture
def places(request: pytest.FixtureRequest) -> Iterator["Places"]:
    with ExitStack() as stack:
        yield Places(request, stack)


class Places:
    """Puts `RECORDS` where a connector reads them, and returns the options of a table there."""

    def __init__(self, request: pytest.FixtureRequest, stack: ExitStack) -> None:
        self._request, self._stack = request, stack

    def json(self) -> dict[str, str]:
        folder: Path = self._request.getfixturevalue("tmp_path") / "records"
        folder.mkdir()
        (folder / "part.json").write_text("".join(f"{json.dumps(each)}\n" for each in RECORDS), "utf-8")
        return {"connector": "json", "path": str(folder)}

    def parquet(self) -> dict[str, str]:
        folder: Path = self._request.getfixturevalue("tmp_path") / "records"
        spark: SparkSession = self._request.getfixturevalue("spark")
        spark.createDataFrame([(1, None), (2, "two")], "id BIGINT, name STRING").write.parquet(str(folder))
        return {"connector": "parquet", "path": str(folder)}

    def elasticsearch(self) -> dict[str, str]:
        indices: Indices = self._request.getfixturevalue("indices")
        index = indices.new("records")
        indices.put(index, RECORDS)
        return {"connector": "elasticsearch", "hosts": indices.url, "index": index}

    def redis(self) -> dict[str, str]:
        server: RedisServer = self._request.getfixturevalue("redis_server")
        prefix: str = self._request.getfixturevalue("redis_keys")
        with server.client() as client:
            for each in RECORDS:
                client.hset(f"{prefix}:{each['id']}", mapping=each)
        return {"connector": "redis", **server.options, "command": "HSET", "key": f"{prefix}:*"}

    def http(self) -> dict[str, str]:
        body = json.dumps(RECORDS).encode()
        server = self._stack.enter_context(web_server(lambda _: Reply(body=body)))
        return {"connector": "http", "url": f"{server.url}/items"}


@pytest.mark.parametrize(
    "kind",
    [
        *("json", "parquet", "redis", "http"),
        pytest.param("elasticsearch", marks=pytest.mark.elasticsearch),
    ],
)
def test_a_declared_column_that_records_lack_is_null_and_further_fields_are_left_out(
    kind: str, places: Places, run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    given: dict[str, str] = getattr(places, kind)()
    options = ", ".join(f"'{name}' = '{value}'" for name, value in given.items())
    (result,) = run(f"CREATE TABLE src {COLUMNS} WITH ({options});\n{COPY}")
    assert result["rows"] == len(RECORDS)
    found = spark.read.schema(COLUMNS.strip("()")).json(str(tmp_path / "copy")).orderBy("id").collect()
    assert [tuple(row) for row in found] == [(1, None, None), (2, "two", None)]


@pytest.mark.elasticsearch
@pytest.mark.parametrize(("dynamic", "mapped"), [("true", {"id", "more"}), ("false", {"id"})])
def test_an_index_adds_a_field_to_its_mapping_or_keeps_it_unmapped(
    indices: Indices, run: Run, dynamic: str, mapped: set[str]
) -> None:
    index = indices.new("fields", {"id": "long"})
    indices.ask("PUT", f"/{index}/_mapping", {"dynamic": dynamic})
    run(indices.table("dst", index, KEYED) + INSERT)
    assert indices.documents(index) == {"1": {"id": 1, "more": "x"}}
    assert set(indices.ask("GET", f"/{index}/_mapping")[index]["mappings"]["properties"]) == mapped


@pytest.mark.elasticsearch
def test_an_index_that_is_strict_fails_the_write_or_has_its_rows_set_aside(
    indices: Indices, run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    index = indices.new("fields", {"id": "long"})
    indices.ask("PUT", f"/{index}/_mapping", {"dynamic": "strict"})
    insert = indices.table("dst", index, KEYED) + INSERT
    with pytest.raises(SqlError, match="rows do not fit"):
        run(insert)
    bad = "CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');\n"
    run(f"SET job.error.limit.rows = 2; SET job.quarantine = bad;\n{bad}{insert}")
    reasons = [row.reason for row in spark.read.json(str(tmp_path / "bad")).collect()]
    assert reasons
    assert all("[more]" in reason for reason in reasons)
