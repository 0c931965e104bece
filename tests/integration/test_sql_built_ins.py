"""Built-in variables in real Spark: each attempt of a run has the values of the run."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.built_ins import values_of
from spark_runner.sql.text.errors import SqlError

pytestmark = pytest.mark.spark

AT = datetime(2026, 1, 31, 4, 5, 6, tzinfo=UTC)
TABLE = "CREATE TABLE t (at TIMESTAMP, run STRING, attempt INT) USING parquet OPTIONS (path 'out/ds=${ds}');"


def run(spark: SparkSession, folder: Path, text: str, attempt: int = 1) -> list[dict[str, Any]]:
    plan = compile_script(text, file="s.sql", base_dir=str(folder), variables={})
    plan |= {"built_ins": values_of("my-run", attempt, AT)}
    writer = Writer("0f0e0d0c-0b0a-0908-0706-050403020100", attempt)
    return execute(spark, json.loads(json.dumps(plan)), lambda _phase: None, writer)


def test_each_attempt_writes_to_the_place_of_its_run_and_replaces_the_earlier_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = TABLE + "INSERT INTO t SELECT TIMESTAMP '${ts}', '${run_id}', ${attempt}"
    run(spark, tmp_path, text)
    results = run(spark, tmp_path, text, attempt=2)
    place = tmp_path / "out" / "ds=2026-01-31"
    assert results[0]["location"] == str(place)
    rows = spark.read.parquet(str(place)).collect()
    assert [(row.run, row.attempt) for row in rows] == [("my-run", 2)]


def test_an_error_of_spark_behind_a_value_has_its_place_in_the_script(
    spark: SparkSession, tmp_path: Path
) -> None:
    text = "CREATE TABLE shown USING print;\nINSERT INTO shown SELECT '${run_id} ${ts}', oops"
    with pytest.raises(SqlError, match="oops") as caught:
        run(spark, tmp_path, text)
    assert (caught.value.line, caught.value.column) == (2, 45)


def test_input_that_the_values_make_a_target_is_not_overwritten(spark: SparkSession, tmp_path: Path) -> None:
    day = tmp_path / "out" / "ds=2026-01-31"
    run(spark, tmp_path, TABLE + "INSERT INTO t SELECT TIMESTAMP '${ts}', 'before', 1")
    inside = "CREATE TABLE inner (a INT) USING csv OPTIONS (path 'out/ds=2026-01-31/inner');"
    with pytest.raises(SqlError, match="would delete table 'inner'"):
        run(spark, tmp_path, TABLE + inside + "INSERT OVERWRITE t SELECT TIMESTAMP '${ts}', 'after', 1")
    assert [row.run for row in spark.read.parquet(str(day)).collect()] == ["before"]
