# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Options of a table for one use, in real Spark."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError

pytestmark = pytest.mark.spark


def run(spark: SparkSession, folder: Path, text: str) -> list[dict[str, Any]]:
    plan = compile_script(text, file="s.sql", base_dir=str(folder), variables={})
    return execute(spark, json.loads(json.dumps(plan)), lambda _phase: None)


TABLE = "CREATE TABLE t (a STRING, b STRING) USING csv OPTIONS (path 'in');\n"


def test_options_change_one_use_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a,b\n1,-\n")
    run(
        spark,
        tmp_path,
        TABLE + "ASSERT (SELECT count(*) FROM t) = 1;"
        "ASSERT (SELECT count(*) FROM t WITH ('header'='false')) = 2;"
        "ASSERT (SELECT count(t.a) FROM t /*+ OPTIONS('null-literal'='1') */ WHERE t.b = '-') = 0;"
        "CREATE VIEW v AS SELECT * FROM t WITH ('null_value'='-') x WHERE x.b IS NULL;"
        "ASSERT (SELECT count(*) FROM v) = 1",
    )


def test_options_of_an_insert_reach_its_files_alone(spark: SparkSession, tmp_path: Path) -> None:
    results = run(
        spark,
        tmp_path,
        "CREATE TABLE o (a INT) USING csv OPTIONS (path 'out');"
        "INSERT INTO o WITH ('compression'='gzip') VALUES (1); INSERT INTO o VALUES (2)",
    )
    assert [(result["target"], result["rows"]) for result in results] == [("o", 1), ("o", 1)]
    assert sorted(file.suffix for file in (tmp_path / "out").glob("part-*")) == [".csv", ".gz"]


def test_a_table_written_by_the_script_is_read_with_options_behind_its_insert(
    spark: SparkSession, tmp_path: Path
) -> None:
    run(
        spark,
        tmp_path,
        TABLE + "INSERT INTO t VALUES ('1', 'x');"
        "ASSERT (SELECT count(*) FROM t WITH ('header'='false')) = 2;"
        "CREATE VIEW v AS SELECT * FROM t WITH ('header'='false');"
        "INSERT INTO t VALUES ('2', 'y');"
        "ASSERT (SELECT count(*) FROM v) = 4",
    )


def test_an_error_of_spark_in_a_query_with_options_has_its_place(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a,b\n1,-\n")
    text = "SELECT a FROM t WITH ('header'='false') WHERE oops"
    with pytest.raises(SqlError, match="oops") as caught:
        run(spark, tmp_path, TABLE + text)
    assert (caught.value.line, caught.value.column) == (2, text.index("oops") + 1)
