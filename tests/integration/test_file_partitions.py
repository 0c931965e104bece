# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Columns of `partition_by`: their folders hold the values, and one write replaces the folders of all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

Run = Callable[[str], list[dict[str, Any]]]
DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return lambda text: execute(spark, plan_of(text, tmp_path), lambda _: None)


def table(kind: str, file_format: str = "parquet") -> str:
    """A table of numbers with one partition column of this kind, and one to show rows."""
    options = "path 'out', partition_by 'p'"
    return f"""CREATE TABLE t (n BIGINT, p {kind}) USING {file_format} OPTIONS ({options});
    CREATE TABLE shown USING print;\n"""


# The mode of Spark that overwrites single partitions


@pytest.mark.parametrize("value", ["dynamic", "DYNAMIC"])
def test_an_overwrite_is_refused_while_spark_would_replace_single_partitions(
    run: Run, spark: SparkSession, tmp_path: Path, value: str
) -> None:
    run(f"{table('STRING')} INSERT INTO t VALUES (1L, 'x'), (2L, 'y')")
    script = f"SET {DYNAMIC} = {value};{table('STRING')} INSERT OVERWRITE t VALUES (3L, 'x')"
    with pytest.raises(SqlError, match=r"replaces the whole folder.*partitionOverwriteMode is dynamic"):
        run(script)
    report = analyse_script(spark, plan_of(script, tmp_path), connect=True)
    assert "partitionOverwriteMode is dynamic" in str(report["errors"])
    seen = run(f"{table('STRING')} INSERT INTO shown SELECT * FROM t ORDER BY n")
    assert seen[0]["preview"] == [["1", "x"], ["2", "y"]]


def test_a_partition_is_replaced_alone_by_a_table_of_its_folder(run: Run) -> None:
    seen = run(
        f"""SET {DYNAMIC} = dynamic; {table("STRING")}
        CREATE TABLE x (n BIGINT) USING parquet OPTIONS (path 'out/p=x');
        INSERT INTO t VALUES (1L, 'x'), (2L, 'y'); INSERT OVERWRITE x SELECT 3L AS n;
        INSERT INTO shown SELECT * FROM t ORDER BY n"""
    )
    assert seen[-1]["preview"] == [["2", "y"], ["3", "x"]]


def test_the_setting_stays_for_added_rows_and_for_tables_without_partitions(run: Run) -> None:
    results = run(
        f"""SET {DYNAMIC} = dynamic; {table("STRING")}
        CREATE TABLE whole USING orc OPTIONS (path 'whole');
        INSERT INTO t VALUES (1L, 'x'); INSERT INTO t VALUES (2L, 'x'), (3L, 'y');
        INSERT OVERWRITE whole SELECT 1 AS a; INSERT OVERWRITE whole SELECT 2 AS a;
        INSERT INTO shown SELECT count(*) FROM t; INSERT INTO shown SELECT a FROM whole"""
    )
    assert [each["preview"] for each in results[-2:]] == [[["3"]], [["2"]]]
