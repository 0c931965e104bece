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


# Values that the name of a folder cannot hold


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__", "x._COPYING_"])
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_texts_that_readers_would_take_for_null_or_leave_out_are_refused(
    run: Run, tmp_path: Path, file_format: str, value: str
) -> None:
    head = table("STRING", file_format)
    run(f"{head} INSERT INTO t VALUES (1L, 'x'), (2L, NULL)")
    before = sorted(tmp_path.rglob("*"))
    for verb in ("INTO", "OVERWRITE"):
        with pytest.raises(
            SqlError, match="of 3 rows 1 have a text in partition_by that the name of a folder"
        ):
            run(f"{head} INSERT {verb} t VALUES (3L, '{value}'), (4L, NULL), (5L, ' ')")
    assert sorted(tmp_path.rglob("*")) == before
    seen = run(f"{head} INSERT INTO shown SELECT * FROM t ORDER BY n")
    assert seen[0]["preview"] == [["1", "x"], ["2", None]]


INEXACT = {
    "TIMESTAMP": ("TIMESTAMP '2026-10-25T01:30:00Z'", r"TIMESTAMP.*\bDATE\b.*TIMESTAMP_NTZ"),
    "BINARY": ("X'ff'", "BINARY.*hex"),
}


@pytest.mark.parametrize("kind", INEXACT)
def test_types_whose_values_are_no_exact_names_of_folders_are_refused(
    run: Run, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    value, words = INEXACT[kind]
    script = f"{table(kind)} INSERT INTO t SELECT 1L, {value}"
    with pytest.raises(SqlError, match=f"'p' of partition_by is {words}"):
        run(script)
    assert list(tmp_path.iterdir()) == []
    assert "'p' of partition_by is" in str(analyse_script(spark, plan_of(script, tmp_path))["errors"])


def test_a_column_whose_folders_would_be_hidden_is_refused(run: Run, tmp_path: Path) -> None:
    script = "CREATE TABLE t (n INT, `.p` INT) USING json OPTIONS (path 'out', partition_by '.p');"
    with pytest.raises(SqlError, match=r"'\.p' of partition_by begins with a dot"):
        run(f"{script} INSERT INTO t SELECT 1, 2")
    assert list(tmp_path.iterdir()) == []


EXACT = {
    "DATE": "DATE '2026-10-25'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '2026-10-25 02:30:00.123456'",
    "STRING": r"' a/b:c=%[x]{y}*\\_.'",
    "DECIMAL(10, 2)": "1.50BD",
    "DOUBLE": "-1.0E-300D",
    "BOOLEAN": "true",
}


@pytest.mark.parametrize("kind", EXACT)
def test_other_values_come_back_as_they_are(run: Run, kind: str) -> None:
    value = EXACT[kind]
    run(
        f"""{table(kind)} INSERT INTO t SELECT 1L, {value}; INSERT INTO t SELECT 2L, NULL;
        ASSERT (SELECT count(*) FROM t WHERE p = {value} AND n = 1 OR p IS NULL AND n = 2) = 2;"""
    )


def test_a_partition_of_times_by_others_is_read(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("SELECT 1L AS n, TIMESTAMP '2026-01-02 03:04:05' AS p").write.partitionBy("p").parquet(
        str(tmp_path / "out")
    )
    seen = run(f"{table('TIMESTAMP')} INSERT INTO shown SELECT n, p FROM t")
    assert seen[0]["preview"] == [["1", "2026-01-02 03:04:05"]]
