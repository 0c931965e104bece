"""The tests of a connector: a module with a fixture `kit` imports all names of this one to collect them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.contract.kit import COLUMNS, ROWS, Can, Kit
from tests.stream_driver import plan_of

__all__ = [
    "run",
    "test_a_missing_target_is_named_before_any_row_is_read",
    "test_a_probe_says_what_is_wrong_and_writes_nothing",
    "test_a_stream_appends_each_row_once_over_several_runs",
    "test_an_unreachable_server_is_named_within_a_bounded_time",
    "test_appended_rows_are_all_there_and_counted",
    "test_marked_rows_delete_by_key",
    "test_rows_are_read_as_they_were_put",
    "test_rows_with_a_key_replace_each_other",
]

COPY = "INSERT INTO dst SELECT * FROM given"
BATCH, STREAM = "SET job.mode = 'batch';\n", "SET job.mode = 'available-now';\n"
Run = Callable[[str], list[dict[str, Any]]]


def inline(rows: Sequence[Sequence[Any]], columns: str = COLUMNS) -> str:
    text = json.dumps(rows).replace("\\", "\\\\").replace("'", "\\'")
    return f"CREATE TABLE given ({columns}) USING inline OPTIONS (rows '{text}');\n"


def needs(kit: Kit, ability: Can) -> None:
    if ability not in kit.can:
        pytest.skip(f"the connector does not declare {ability.name}")


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    """Runs scripts as attempts of one job, whose checkpoints stay."""
    return lambda text: execute(spark, plan_of(text, tmp_path), lambda _: None)


def test_appended_rows_are_all_there_and_counted(kit: Kit, run: Run) -> None:
    needs(kit, Can.APPEND)
    target = kit.create()
    script = BATCH + inline(ROWS) + kit.table("dst", target) + COPY
    (result,) = run(script)
    assert result["rows"] == len(ROWS)
    assert sorted(kit.rows(target)) == sorted(ROWS)


def test_rows_are_read_as_they_were_put(kit: Kit, run: Run, tmp_path: Path, spark: SparkSession) -> None:
    needs(kit, Can.READ)
    target = kit.create()
    kit.put(target, ROWS)
    out = f"CREATE TABLE dst ({COLUMNS}) USING parquet OPTIONS (path '{tmp_path}/out');\n"
    (result,) = run(BATCH + kit.table("given", target) + out + COPY)
    assert result["rows"] == len(ROWS)
    assert sorted(map(tuple, spark.read.parquet(f"{tmp_path}/out").collect())) == sorted(ROWS)


def test_a_stream_appends_each_row_once_over_several_runs(kit: Kit, run: Run) -> None:
    needs(kit, Can.STREAM | Can.APPEND)
    source, target = kit.create(), kit.create()
    script = STREAM + kit.table("src", source) + kit.table("dst", target)
    script += "INSERT INTO dst SELECT id * 10 AS id, name, amount FROM src"
    kit.put(source, ROWS[:2])
    assert sum(each["rows"] for each in run(script)) == 2
    kit.put(source, ROWS[2:])
    assert sum(each["rows"] for each in run(script)) == 1
    assert sum(each["rows"] for each in run(script)) == 0
    assert sorted(row[0] for row in kit.rows(target)) == [10, 20, 30]


def test_rows_with_a_key_replace_each_other(kit: Kit, run: Run) -> None:
    needs(kit, Can.UPSERT)
    target = kit.create()
    for rows in (ROWS, [(2, "new", 0.5)]):
        script = BATCH + inline(rows) + kit.table("dst", target, key=True)
        (result,) = run(script + COPY)
        assert result["rows"] == len(rows)
    assert sorted(kit.rows(target)) == [ROWS[0], (2, "new", 0.5), ROWS[2]]


def test_marked_rows_delete_by_key(kit: Kit, run: Run) -> None:
    needs(kit, Can.DELETE)
    target = kit.create()
    columns = f"{COLUMNS}, gone BOOLEAN"
    for rows in ([(*row, False) for row in ROWS], [(2, None, None, True), (4, "four", 4.0, None)]):
        script = BATCH + inline(rows, columns) + kit.table("dst", target, key=True, deletes=True)
        (result,) = run(script + COPY)
        assert result["rows"] == len(rows)
    assert sorted(kit.rows(target)) == [ROWS[0], ROWS[2], (4, "four", 4.0)]


def test_an_unreachable_server_is_named_within_a_bounded_time(kit: Kit, run: Run) -> None:
    table, words = kit.unreachable("dst")
    with pytest.raises(SqlError) as caught:
        run(BATCH + inline(ROWS) + table + COPY)
    assert words in str(caught.value)


def test_a_missing_target_is_named_before_any_row_is_read(kit: Kit, run: Run) -> None:
    table, words = kit.missing("dst")
    with pytest.raises(SqlError) as caught:
        run(BATCH + inline(ROWS) + table + COPY)
    assert words in str(caught.value)


def test_a_probe_says_what_is_wrong_and_writes_nothing(kit: Kit, tmp_path: Path, spark: SparkSession) -> None:
    needs(kit, Can.PROBE)
    target = kit.create()
    missing, words = kit.missing("dst")
    found = []
    for table in (kit.table("dst", target), missing):
        script = BATCH + inline(ROWS) + table + COPY
        report = analyse_script(spark, plan_of(script, tmp_path), connect=True)
        found.append([each for each in report["probes"] if each["table"] == "dst"])
    ((fine,), (wrong,)) = found
    assert fine["ok"]
    assert not wrong["ok"]
    assert words in wrong["message"]
    assert kit.rows(target) == []
