"""Tables in a real Elasticsearch: what arrives there, what comes back, and what is wrong."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.elasticsearch.sink import ElasticsearchSink
from spark_runner.connectors.errors import ConnectorError, NothingThere, Unreachable
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.elasticsearch_support import Indices, options
from tests.log_proxy import Asked, LogProxy, Said
from tests.stream_driver import plan_of

TYPES = (
    "id BIGINT, name STRING, price DECIMAL(20,4), at TIMESTAMP, day DATE, ok BOOLEAN, part DOUBLE,"
    " data BINARY, tags ARRAY<STRING>, inner STRUCT<a: INT, b: STRING>, counts MAP<STRING, INT>,"
    " ntz TIMESTAMP_NTZ"
)
VALUES = """SELECT id, concat('ä "', id, '"\\n'), CAST(1234567890123450.21 + id AS DECIMAL(20,4)),
  timestamp'2026-01-02 03:04:05.123456', date'2026-01-02', id % 2 = 0, CAST(1 AS DOUBLE) / 3,
  encode('ab', 'utf-8'), array('x', 'y'), struct(CAST(id AS INT), 'z'), map('k', 1),
  timestamp_ntz'2026-01-02 03:04:05.5' FROM range(3)
  UNION ALL SELECT 3, null, null, null, null, null, null, null, null, null, null, null"""
Run = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return lambda text: execute(spark, plan_of(text, tmp_path), lambda _: None)


@pytest.fixture
def proxy(elasticsearch_url: str) -> Iterator[LogProxy]:
    with LogProxy(elasticsearch_url) as found:
        yield found


def out(tmp_path: Path, columns: str = "") -> str:
    return f"CREATE TABLE copy {columns} USING parquet OPTIONS (path '{tmp_path}/copy');\n"


def test_the_script_of_the_docs_runs(indices: Indices, spark: SparkSession, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "connectors" / "elasticsearch.md").read_text("utf-8")
    (script,) = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    script = script.replace("docs-clicks", f"{indices.prefix}-clicks")
    for _ in range(2):
        execute(spark, plan_of(script, tmp_path, hosts=indices.url), lambda _: None)
    expected = {"home|2026-01-02", "shop|2026-01-02", "home|2026-01-03"}
    assert set(indices.documents(f"{indices.prefix}-clicks")) == expected
    assert {row.id for row in spark.read.json(f"{tmp_path}/home").collect()} == expected - {"shop|2026-01-02"}


def write(spark: SparkSession, query: str, given: dict[str, Any], *key: str) -> int:
    request = WriteRequest("append", Writer("run"), key)
    return ElasticsearchSink().write(spark.sql(query), given, request).rows


def test_values_of_each_type_come_back_from_an_index_that_was_created_for_them(
    indices: Indices, run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    index = f"{indices.prefix}-types"
    key = f"{TYPES}, PRIMARY KEY (id) NOT ENFORCED"
    script = indices.table("dst", index, key, missing_index="create", refresh="true")
    script += f"INSERT INTO dst {VALUES};\n"
    more = ", doc STRING METADATA FROM '_id', its STRING METADATA FROM '_index'"
    script += indices.table("src", index, f"{TYPES}{more}, v BIGINT METADATA FROM '_version'")
    script += out(tmp_path) + "INSERT INTO copy SELECT * FROM src;"
    assert [each["rows"] for each in run(script)] == [4, 4]
    copied = spark.read.parquet(f"{tmp_path}/copy")
    read = copied.drop("doc", "its", "v")
    given = spark.sql(VALUES).toDF(*read.columns)
    assert sorted(map(tuple, read.collect())) == sorted(map(tuple, given.collect()))
    assert {(row.doc, row.its, row.v) for row in copied.collect()} == {(str(n), index, 1) for n in range(4)}
    fields = indices.ask("GET", f"/{index}/_mapping")[index]["mappings"]["properties"]
    kinds = {name: fields[name].get("type") for name in ("id", "name", "price", "at", "day", "tags", "data")}
    assert list(kinds.values()) == ["long", "keyword", "double", "date", "date", "keyword", "binary"]
    assert fields["inner"]["properties"]["a"] == {"type": "integer"}


def test_rows_with_a_key_replace_update_stay_or_delete(indices: Indices, spark: SparkSession) -> None:
    index = indices.new("actions")
    given = options(indices.url, index=index)
    assert write(spark, "SELECT 'a' AS k, 1 AS n, 'x' AS v", given, "k") == 1
    assert write(spark, "SELECT 'a' AS k, 2 AS n", {**given, "action": "update"}, "k") == 1
    assert indices.documents(index) == {"a": {"k": "a", "n": 2, "v": "x"}}
    assert write(spark, "SELECT 'a' AS k, 9 AS n", {**given, "action": "create"}, "k") == 1
    assert indices.documents(index)["a"]["n"] == 2
    assert write(spark, "SELECT 'a' AS k, 3 AS n", given, "k") == 1
    assert indices.documents(index) == {"a": {"k": "a", "n": 3}}
    keys = "SELECT 'a|b' AS k, 'c' AS l UNION ALL SELECT 'a', 'b|c' UNION ALL SELECT 'a', null"
    assert write(spark, keys, given, "k", "l") == 2
    assert set(indices.documents(index)) == {"a", r"a\|b|c", r"a|b\|c"}
    assert write(spark, "SELECT 'a' AS k UNION ALL SELECT 'none'", {**given, "action": "delete"}, "k") == 2
    assert "a" not in indices.documents(index)


def test_a_row_that_is_older_than_its_document_changes_nothing(indices: Indices, spark: SparkSession) -> None:
    index = indices.new("versions")
    given = options(indices.url, index=index, version_column="v", delete_column="gone")
    rounds = ("(1, 5, false), (2, 5, false)", "(1, 3, false), (2, 4, true)", "(1, 6, true)")
    for rows in rounds:
        values = f"SELECT * FROM VALUES {rows} AS t(id, v, gone)"
        assert write(spark, values, given, "id") == rows.count("(")
    assert indices.documents(index) == {"2": {"id": 2, "v": 5}}


def test_a_micro_batch_that_is_written_again_doubles_only_rows_without_a_key(
    indices: Indices, spark: SparkSession
) -> None:
    for key, expected in (("id",), 1000), ((), 2000):
        index = indices.new(f"again-{len(key)}")
        for _ in range(2):
            assert write(spark, "SELECT id FROM range(1000)", options(indices.url, index=index), *key) == 1000
        assert indices.count(index) == expected


def test_the_index_depends_on_columns_and_a_query_reads_some_of_them(
    indices: Indices, run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    template = f"{indices.prefix}-of-{{day}}"
    script = indices.table("dst", template, "id BIGINT, day STRING", routing="{day}", refresh="true")
    script += "INSERT INTO dst SELECT id, concat('d', id % 3) FROM range(5000);\n"
    wanted = json.dumps({"range": {"id": {"gte": 1000}}})
    columns = "id BIGINT, day STRING, its STRING METADATA FROM '_index'"
    script += indices.table("src", template, columns, query=wanted, partitions=3)
    script += out(tmp_path) + "INSERT INTO copy SELECT * FROM src;"
    assert [each["rows"] for each in run(script)] == [5000, 4000]
    copied = spark.read.parquet(f"{tmp_path}/copy")
    assert copied.select("id").distinct().count() == 4000
    assert copied.where(f"its != concat('{indices.prefix}-of-d', id % 3)").isEmpty()


def test_rejected_rows_are_set_aside_whole_and_the_others_are_written(
    indices: Indices, run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    index = indices.new("rejects", {"n": "long"})
    script = "SET job.error.limit.percent = 1.1; SET job.quarantine = bad;\n"
    script += "CREATE TABLE bad USING json OPTIONS (path 'bad');\n"
    script += indices.table("dst", index, "id STRING, n STRING, PRIMARY KEY (id) NOT ENFORCED")
    script += """INSERT INTO dst SELECT CASE WHEN id = 1 THEN null WHEN id = 2 THEN repeat('i', 600)
        ELSE string(id) END, CASE WHEN id % 100 = 50 THEN 'x' ELSE string(id) END FROM range(2000);"""
    (result,) = run(script)
    assert result["rows"] == 2000 - 22 == indices.count(index)
    bad = spark.read.json(f"{tmp_path}/bad").collect()
    reasons = [row.reason.partition(":")[0] for row in bad]
    assert sorted(reasons)[:2] == ["a column of its key is NULL", "document_parsing_exception"]
    assert reasons.count("document_parsing_exception") == 20
    assert "its id has more than 512 bytes" in reasons
    assert any("field [n] of type [long]" in row.reason for row in bad)
    assert ('{"id":"50","n":"x"}', "json") in {(row.record, row.form) for row in bad}


def test_a_document_of_another_type_is_named_or_set_aside(
    indices: Indices, run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    index = indices.new("wrong", {"n": "keyword", "s": "object"})
    indices.put(index, [{"n": 1}, {"n": "many", "s": {"b": 1}}, {"s": {"b": 1.50}}, {"other": 1}])
    script = indices.table("src", index, "n BIGINT, s STRING") + out(tmp_path, "(n BIGINT, s STRING)")
    script += "INSERT OVERWRITE copy SELECT * FROM src;"
    with pytest.raises(SqlError, match=f"document '1' of index '{index}' does not fit .*: field n"):
        run(script)
    bad = "CREATE TABLE bad USING json OPTIONS (path 'bad'); SET job.quarantine = bad;\n"
    run("SET job.error.limit.rows = 1;" + bad + script)
    rows = {tuple(row) for row in spark.read.parquet(f"{tmp_path}/copy").collect()}
    assert rows == {(1, None), (None, '{"b":1.5}'), (None, None)}
    (row,) = spark.read.json(f"{tmp_path}/bad").collect()
    assert json.loads(row.record)["_source"] == {"n": "many", "s": {"b": 1}}


def test_a_data_stream_gets_creates_without_ids(
    indices: Indices, spark: SparkSession, proxy: LogProxy
) -> None:
    index, seen = indices.new("stream"), list[Asked]()

    def look(asked: Asked) -> Said:
        seen.append(asked)
        return asked.forward()

    proxy.rule = look
    given = options(proxy.url, index=index, action="create")
    assert write(spark, "SELECT timestamp'2026-01-02 03:04:05 UTC' AS `@timestamp`, 1 AS n", given) == 1
    (bulk,) = [asked for asked in seen if asked.is_bulk]
    head, document = bulk.body.splitlines()
    assert json.loads(head) == {"create": {"_index": index}}
    assert json.loads(document)["@timestamp"] == "2026-01-02T08:49:05.000000+05:45"


def test_what_is_wrong_with_a_target_is_named(indices: Indices, spark: SparkSession) -> None:
    given = options(indices.url, index=f"{indices.prefix}-none")
    with pytest.raises(NothingThere, match=r"-none' .* does not exist; create it, or set option"):
        write(spark, "SELECT 1 AS n", given)
    assert write(spark, "SELECT 1 AS n", {**given, "missing_index": "server"}) == 1
    with pytest.raises(ConnectorError, match="names several indices"):
        write(spark, "SELECT 1 AS n", {**given, "index": "a*"})
    with pytest.raises(NothingThere, match="has no pipeline 'none'"):
        write(spark, "SELECT 1 AS n", {**given, "pipeline": "none"})
    for more in ({"action": "update"}, {"delete_column": "n"}, {"version_column": "n"}):
        with pytest.raises(ConnectorError, match="needs a PRIMARY KEY"):
            write(spark, "SELECT 1 AS n", {**given, **more})


def test_what_is_wrong_with_a_source_is_named(indices: Indices, run: Run, tmp_path: Path) -> None:
    copy = out(tmp_path) + "INSERT INTO copy SELECT * FROM src;"
    with pytest.raises(SqlError, match="index_not_found_exception") as found:
        run(indices.table("src", f"{indices.prefix}-none", "n BIGINT") + copy)
    assert isinstance(found.value.__cause__, NothingThere)
    with pytest.raises(SqlError, match="does not answer") as found:
        run(Indices("http://127.0.0.1:9", "").table("src", "any", "n BIGINT") + copy)
    assert isinstance(found.value.__cause__, Unreachable)
    index = indices.new("query")
    with pytest.raises(SqlError, match="unknown query"):
        run(indices.table("src", index, "n BIGINT", query='{"trem": {"n": 1}}') + copy)


def test_two_indices_that_copy_each_other_take_no_row_of_their_own_for_news(
    indices: Indices, spark: SparkSession, tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "push.md").read_text("utf-8")
    (script,) = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names = ("customers", "people")
    for number, name in enumerate(names):
        index = indices.new(name, {"id": "long", "name": "keyword", "origin": "keyword"})
        indices.put(index, [{"id": 10 + number, "name": "new"}])
        given = f"'elasticsearch', 'hosts' = '{indices.url}', 'index' = '{index}', 'refresh' = 'true'"
        script, count = re.subn(rf"'jdbc', .*'table' = '{name}'", given, script)
        assert count == 1
    results = [execute(spark, plan_of(script, tmp_path), lambda _: None) for _ in range(2)]
    written = [[each["rows"] for each in result] for result in results]
    assert written == [[1, 1], [1, 1]], "a row that came from there does not go back"
    for name in names:
        found = indices.documents(f"{indices.prefix}-{name}").values()
        assert sorted(each["id"] for each in found) == [10, 11]
