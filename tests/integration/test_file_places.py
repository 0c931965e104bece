# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Folders of files that are tables of other formats, and paths that Spark reads as patterns."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.connectors.files.targets import TargetDirectory, is_in_swap
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


# Patterns


@pytest.mark.parametrize("path", ["out[1]", "out*", "a/{b}", "what?", r"back\\slash", "file:{folder}/*"])
def test_a_table_whose_path_is_a_pattern_is_not_written(tmp_path: Path, path: str) -> None:
    script = f"{TABLE.format(path.replace('{folder}', str(tmp_path)))} INSERT INTO t SELECT 7L"
    with pytest.raises(SqlError, match=r"'t' cannot be written: .* is a pattern, for reads alone"):
        plan_of(script, tmp_path)


def test_the_folder_of_the_script_may_not_make_a_pattern_of_a_written_path(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match=r"'t' cannot be written: .* is a pattern, for reads alone"):
        plan_of(f"{TABLE.format('out')} INSERT INTO t SELECT 7L", tmp_path / "a[1]")


def test_a_table_that_is_only_read_may_have_a_pattern(run: Run) -> None:
    for number, name in enumerate(("one", "two"), 1):
        run(f"{TABLE.format(name)} INSERT INTO t SELECT {number}L")
    seen = run(f"{TABLE.format('{one,tw?}')} INSERT INTO shown SELECT sum(id) FROM t")
    assert seen[0]["preview"] == [["3"]]


def test_a_target_behind_a_link_into_a_folder_with_a_name_like_a_pattern(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "disk[1]{a,b}*?"
    (place / "out").mkdir(parents=True)
    (tmp_path / "disk1").mkdir()  # the pattern would match it
    (tmp_path / "out").symlink_to(place / "out")
    (seen,) = run(f"{TABLE.format('out')} INSERT INTO t SELECT 7L")
    assert seen["preview"] == [["7"]]
    dead = Path(TargetDirectory(spark, str(tmp_path / "out"), Writer("dead")).staging.removeprefix("file:"))
    assert dead.parent == place
    (place / "out").rename(f"{dead}.old")
    dead.mkdir()
    assert is_in_swap(spark, str(tmp_path / "out"))
    TargetDirectory(spark, str(tmp_path / "out"), Writer("dead", 2)).recover()
    assert [path.name for path in place.iterdir()] == ["out"]
    run(f"{TABLE.format('out')} INSERT INTO t SELECT 8L; ASSERT (SELECT sum(id) FROM t) = 15")


def test_columns_are_compared_with_a_file_whose_name_is_like_a_pattern(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    for file_format in ("csv", "json", "parquet"):
        out = tmp_path / file_format
        spark.sql("SELECT 1L AS id, 2L AS n").coalesce(1).write.format(file_format).option(
            "header", "true"
        ).save(str(out))
        for file in out.glob("part-*"):
            file.rename(out / f"data[1].{file_format}")
        table = f"CREATE TABLE t USING {file_format} OPTIONS (path '{file_format}');"
        with pytest.raises(SqlError, match=r"\(id, n\)|records with n"):
            run(f"{table} INSERT INTO t SELECT 7L AS id")
