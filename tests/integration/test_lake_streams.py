"""Streams into tables of Iceberg and Delta Lake: a micro-batch that runs again adds no row."""

# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.analysis import analyse_script
from tests.catalog_support import Run, scripts_in, source
from tests.lake_support import KINDS, table, target
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300), pytest.mark.parametrize("lake", KINDS)]

MODE = "SET job.mode = 'available-now';\n"


@pytest.fixture
def run(lake_spark: SparkSession, tmp_path: Path) -> Run:
    return scripts_in(lake_spark, tmp_path)


def script(lake: str, folder: Path) -> str:
    return f"{MODE}{table(lake, folder)}CREATE TABLE src (id INT) USING json OPTIONS (path 'in');\n"


def check_rows(run: Run, lake: str, folder: Path, *ids: int) -> None:
    found = f"(SELECT array_sort(collect_list(id)) FROM {target(lake, folder)})"
    run(f"{table(lake, folder)}ASSERT {found} = array({', '.join(map(str, ids))})")


def forget_last_batch(folder: Path) -> None:
    """Let the last micro-batch of each query begin again, as after the death of its driver."""
    for commits in (folder / "checkpoints" / "job").glob("*/commits"):
        last = max(
            (each for each in commits.iterdir() if each.name.isdigit()), key=lambda each: int(each.name)
        )
        last.unlink()
        (commits / f".{last.name}.crc").unlink(missing_ok=True)


def test_a_batch_that_begins_again_adds_no_row_and_a_stream_that_begins_anew_adds_all(
    run: Run, lake: str, tmp_path: Path
) -> None:
    text = f"{script(lake, tmp_path)}INSERT INTO {target(lake, tmp_path)} SELECT id, 1L FROM src;"
    for number in (1, 3):
        source(tmp_path, number, number + 1)
        (result,) = run(text)
        assert (result["rows"], result["connector"]) == (2, "catalog")
    forget_last_batch(tmp_path)
    (result,) = run(text)
    assert (result["batches"], result["rows"]) == (1, 2), "it was the same micro-batch"
    check_rows(run, lake, tmp_path, 1, 2, 3, 4)
    (tmp_path / "checkpoints").rename(tmp_path / "forgotten")
    run(text)
    check_rows(run, lake, tmp_path, *sorted([1, 2, 3, 4] * 2))


def test_each_insert_of_a_set_adds_its_rows_to_one_table_once(run: Run, lake: str, tmp_path: Path) -> None:
    name = target(lake, tmp_path)
    text = f"""{script(lake, tmp_path)}BEGIN STATEMENT SET;
    INSERT INTO {name} SELECT id, 1L FROM src; INSERT INTO {name} SELECT -id, 2L FROM src; END;"""
    source(tmp_path, 1, 2)
    run(text)
    forget_last_batch(tmp_path)
    run(text)
    check_rows(run, lake, tmp_path, -2, -1, 1, 2)


def test_the_analysis_shows_that_a_micro_batch_is_added_once(
    run: Run, lake: str, lake_spark: SparkSession, tmp_path: Path
) -> None:
    run(table(lake, tmp_path))
    source(tmp_path, 1)
    text = f"{script(lake, tmp_path)}INSERT INTO {target(lake, tmp_path)} SELECT id, 1L FROM src;"
    report = analyse_script(lake_spark, plan_of(text, tmp_path), connect=True)
    assert report["errors"] == []
    assert report["statements"][-1]["guarantee"].startswith(
        "exactly once: a further attempt finds the number"
    )
