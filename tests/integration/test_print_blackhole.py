# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Rows that are shown, and rows that are dropped: both are counted, in batches and in streams."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

Run = Callable[[str], list[dict[str, Any]]]
STREAM = """SET job.mode = 'available-now';
CREATE TABLE src (n BIGINT, word STRING) USING json OPTIONS (path 'in', max_files_per_trigger 2);
"""


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    (tmp_path / "in").mkdir()
    return lambda text: execute(spark, plan_of(text, tmp_path), lambda _: None)


def put(folder: Path, name: str, *numbers: int) -> None:
    lines = [json.dumps({"n": number, "word": f"w{number}"}) for number in numbers]
    (folder / "in" / f"{name}.json").write_text("\n".join(lines))


def test_print_shows_each_micro_batch_with_its_number_and_counts_all_its_rows(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = (
        f"{STREAM} CREATE TABLE p USING print OPTIONS (limit 2); INSERT INTO p SELECT * FROM src WHERE n > 0"
    )
    put(tmp_path, "a", 1)
    put(tmp_path, "b", *range(2, 1_501))
    (result,) = run(script)
    assert (result["rows"], result["batches"]) == (1_500, 1)
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["micro-batch 0: 1,500 rows", "n | word"]
    assert len(shown) == 6
    assert shown[-1] == "only the first 2 rows are shown"
    put(tmp_path, "c", 7)
    run(script)
    assert capsys.readouterr().out == "micro-batch 1: 1 row\nn | word\n--+-----\n7 | w7\n"
    put(tmp_path, "d", 0)
    assert run(script)[0]["rows"] == 0
    assert capsys.readouterr().out == "micro-batch 2: 0 rows\n"


def test_blackhole_computes_and_counts_all_rows_of_a_batch(run: Run) -> None:
    table = "CREATE TABLE t WITH ('connector' = 'blackhole');\n"
    (result,) = run(f"{table} INSERT INTO t SELECT id AS a, id AS a FROM range(0, 100000, 1, 7)")
    assert (result["rows"], result["preview"], result["location"]) == (100_000, [], "")
    assert run(f"{table} INSERT OVERWRITE t SELECT 1 WHERE false")[0]["rows"] == 0
    with pytest.raises(SqlError, match="computed"):
        run(f"{table} INSERT INTO t SELECT IF(id = 99, raise_error('computed'), 1) FROM range(100)")


def test_blackhole_counts_the_rows_of_each_run_of_a_stream(run: Run, tmp_path: Path) -> None:
    script = f"{STREAM} CREATE TABLE t USING blackhole; INSERT INTO t SELECT * FROM src"
    for number in range(5):
        put(tmp_path, f"{number}", *range(number + 1))
    (result,) = run(script)
    assert (result["rows"], result["batches"]) == (15, 3)
    put(tmp_path, "late", 1, 2)
    assert run(script)[0]["rows"] == 2


def test_blackhole_has_no_options(run: Run) -> None:
    with pytest.raises(SqlError, match="unknown option 'path' of connector 'blackhole'; it takes none"):
        run("CREATE TABLE t USING blackhole OPTIONS (path 'x')")
