# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""The analysis of scripts that read streams finds what Spark would refuse at the start of their queries."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

TABLES = """SET job.mode = 'available-now';
CREATE TABLE s (id BIGINT, k STRING, ts TIMESTAMP) USING json OPTIONS (path 'in');
CREATE TABLE w (id BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE)
  USING json OPTIONS (path 'in');
CREATE TABLE whole (id BIGINT, label STRING) USING json OPTIONS (path 'whole', streaming 'false');
CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
"""


def errors(
    spark: SparkSession, text: str, folder: Path, *, connect: bool = False, with_plan: bool = False
) -> list[dict[str, Any]]:
    report = analyse_script(spark, plan_of(text, folder), connect=connect, with_plan=with_plan)
    found: list[dict[str, Any]] = report["errors"]
    return found


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT n FROM (SELECT count(*) AS n FROM s GROUP BY k)", "aggregations without watermark"),
        ("SELECT * FROM (SELECT DISTINCT id FROM s)", "aggregations without watermark"),
        ("SELECT id FROM (SELECT id FROM s ORDER BY id)", "Sorting is not supported"),
        ("SELECT row_number() OVER (ORDER BY id) FROM s", "Window function is not supported"),
        ("SELECT a.id FROM s AS a LEFT JOIN s AS b USING (id)", "LeftOuter join"),
        (
            "SELECT id FROM s WHERE id IN (SELECT max(id) FROM s)",
            "Streaming query is not allowed in subquery",
        ),
    ],
)
def test_what_spark_cannot_stream_is_an_error_before_the_run(
    spark: SparkSession, tmp_path: Path, query: str, message: str
) -> None:
    (found,) = errors(spark, f"{TABLES}INSERT INTO out {query};", tmp_path)
    assert message in found["message"]
    assert found["line"] == 7


def test_what_spark_can_stream_has_no_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "whole").mkdir()
    script = TABLES + (
        "SET job.error.limit.rows = 9;"
        "INSERT INTO out SELECT count(*) FROM w GROUP BY window(ts, '1 minute');"
        "INSERT INTO out SELECT max(id) FROM whole JOIN w USING (id) GROUP BY label, window(ts, '1 day');"
        "INSERT INTO out SELECT s.id FROM s JOIN (SELECT DISTINCT id FROM whole ORDER BY id) USING (id);"
        "INSERT INTO out SELECT id FROM s UNION ALL SELECT id FROM w;"
    )
    assert errors(spark, script, tmp_path, with_plan=True) == []
    assert errors(spark, script, tmp_path, connect=True) == []


def test_a_watermark_that_spark_refuses_is_an_error_at_its_table(spark: SparkSession, tmp_path: Path) -> None:
    tables = TABLES.replace("ts TIMESTAMP, W", "ts STRING, W")
    script = f"{tables}INSERT INTO out SELECT id FROM w;"
    (tmp_path / "in").mkdir()
    (found,) = errors(spark, script, tmp_path)
    assert (found["line"], "table 'w'" in found["message"]) == (3, True)
    with pytest.raises(SqlError) as refused:
        execute(spark, plan_of(script, tmp_path), lambda _: None)
    assert (refused.value.line, refused.value.message) == (3, found["message"])
