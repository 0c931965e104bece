# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Statements that show or check data and write nothing, in Spark."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError

pytestmark = pytest.mark.spark

Run = Callable[..., list[dict[str, Any]]]
SOURCE = """\
CREATE TABLE src (id INT, name STRING) USING inline OPTIONS (rows '[[0, "a"], [1, null]]');
"""


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    def run_script(text: str, *, reports: list[str] | None = None) -> list[dict[str, Any]]:
        plan = compile_script(text, file="s.sql", base_dir=str(tmp_path), variables={})
        return execute(spark, json.loads(json.dumps(plan)), (reports if reports is not None else []).append)

    return run_script


# Queries


def test_a_query_shows_its_rows_and_is_no_insert(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    reports: list[str] = []
    assert run(f"{SOURCE}SELECT * FROM src ORDER BY id;", reports=reports) == []
    assert capsys.readouterr().out == "id | name\n---+-----\n0  | a\n1  | NULL\n"
    assert reports == ["CREATE TABLE src", "query of line 2"]


def test_of_many_rows_a_query_computes_and_shows_the_first(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    # Row 25 fails; it is behind the row that says that more exist.
    run("SELECT assert_true(id < 25) AS ok, id FROM range(0, 100, 1, 1)")
    shown = capsys.readouterr().out.splitlines()
    assert shown[2:] == [*(f"NULL | {n}" for n in range(20)), "only the first 20 rows are shown"]


@pytest.mark.parametrize(
    ("query", "marked"),
    [("SELECT id,\n nope FROM src", "nope"), ("SELECT 1 /\n id FROM src", "1 /"), ("(SELECT 1", ";")],
)
def test_an_error_in_a_query_points_at_its_place(run: Run, query: str, marked: str) -> None:
    text = f"{SOURCE}{query};"
    with pytest.raises(SqlError) as caught:
        run(text)
    error, offset = caught.value, text.index(marked, len(SOURCE))
    assert (error.line, error.column) == (
        text.count("\n", 0, offset) + 1,
        offset - text.rfind("\n", 0, offset),
    )


def test_a_query_between_inserts_shows_the_data_of_that_moment(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    results = run("""
        CREATE TABLE t USING parquet OPTIONS (path 'out');
        INSERT INTO t SELECT 1 AS a; SELECT count(*) AS n FROM t;
        INSERT INTO t SELECT 2 AS a; SELECT count(*) AS n FROM t;
    """)
    assert [result["rows"] for result in results] == [1, 1]
    assert capsys.readouterr().out == "n\n-\n1\nn\n-\n2\n"
