# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Folders of files that are tables of other formats, and paths that Spark reads as patterns."""

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
TABLE = "CREATE TABLE t (id BIGINT) USING parquet OPTIONS (path '{}'); CREATE TABLE shown USING print;\n"
LAKES = {
    "Delta Lake": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/v1.metadata.json",
}


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    return lambda text: execute(spark, plan_of(text, tmp_path), lambda _: None)


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


# Tables of other formats


def with_log(spark: SparkSession, folder: Path, log: str) -> None:
    spark.range(2).coalesce(1).write.parquet(str(folder))
    (folder / log).parent.mkdir()
    (folder / log).write_text("{}")


@pytest.mark.parametrize("verb", ["INTO", "OVERWRITE"])
@pytest.mark.parametrize("log", ["_spark_metadata/0", ".hoodie/hoodie.properties", *LAKES.values()])
def test_rows_are_not_added_to_a_table_whose_log_would_not_have_them(
    run: Run, spark: SparkSession, tmp_path: Path, log: str, verb: str
) -> None:
    with_log(spark, tmp_path / "out", log)
    before = names(tmp_path)
    script = f"{TABLE.format('out')} INSERT {verb} t SELECT 7L"
    with pytest.raises(SqlError, match=f"refused: .*{log.partition('/')[0]}"):
        run(script)
    assert log.partition("/")[0] in str(
        analyse_script(spark, plan_of(script, tmp_path), connect=True)["errors"]
    )
    assert names(tmp_path) == before


@pytest.mark.parametrize("path", ["out", "o*", "{in,out}"])
@pytest.mark.parametrize("kind", LAKES)
def test_files_of_a_lake_are_not_read_as_a_table(
    run: Run, spark: SparkSession, tmp_path: Path, kind: str, path: str
) -> None:
    with_log(spark, tmp_path / "out", LAKES[kind])
    with pytest.raises(SqlError, match=rf"is a table of {kind} .*docs/connectors/lake\.md"):
        run(f"{TABLE.format(path)} INSERT INTO shown SELECT * FROM t")


@pytest.mark.parametrize("kind", LAKES)
def test_files_of_a_lake_are_not_read_by_a_stream(
    run: Run, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    with_log(spark, tmp_path / "out", LAKES[kind])
    with pytest.raises(SqlError, match=f"is a table of {kind}"):
        run(f"SET job.mode = 'available-now'; {TABLE.format('out')} INSERT INTO shown SELECT * FROM t")


def test_rows_that_a_stream_of_spark_has_written_are_read(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    spark.range(3).write.parquet(str(tmp_path / "in"))
    writer = spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "in")).writeStream.format("parquet")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    query.start(str(tmp_path / "out")).awaitTermination()
    seen = run(f"{TABLE.format('out')} INSERT INTO shown SELECT count(*) FROM t")
    assert seen[0]["preview"] == [["3"]]
    with pytest.raises(SqlError, match="_spark_metadata"):
        run(f"{TABLE.format('out')} INSERT INTO t SELECT 7L")


@pytest.mark.parametrize("folder", ["metadata", "_delta"])
def test_a_folder_whose_name_is_like_that_of_a_log_is_no_table_of_a_lake(
    run: Run, tmp_path: Path, folder: str
) -> None:
    (tmp_path / "out" / folder).mkdir(parents=True)
    (tmp_path / "out" / folder / "README.md").touch()
    run(f"{TABLE.format('out')} INSERT INTO t SELECT 7L")
