# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Computed and metadata columns and expectations, run by Spark."""

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


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    (tmp_path / "in.csv").write_text("id,price,ts\n1,10.5,2026-01-02 03:04:05\n2,-1,2026-01-03 00:00:00\n")

    def run_script(text: str) -> list[dict[str, Any]]:
        plan = compile_script(text, file="s.sql", base_dir=str(tmp_path), variables={})
        return execute(spark, json.loads(json.dumps(plan)), lambda _phase: None)

    return run_script


STORED = "id INT, price DECIMAL(6, 2), ts TIMESTAMP"


def declared(columns: str) -> str:
    return f"CREATE TABLE src ({columns}) USING csv OPTIONS (path 'in.csv');\nCREATE TABLE p USING print;\n"


def test_readers_see_all_columns_in_the_order_of_their_declaration(run: Run, tmp_path: Path) -> None:
    columns = (
        "id INT, total AS price * 2, price DECIMAL(6, 2), file STRING METADATA FROM 'file.path',"
        "day STRING GENERATED ALWAYS AS (CAST(ts AS DATE)), ts TIMESTAMP NOT NULL, twice AS total + id,"
        "size INT NOT NULL METADATA FROM 'file_size' COMMENT 'bytes',"
        "WATERMARK FOR ts AS ts - INTERVAL 1 DAY,"
        "PRIMARY KEY (id) NOT ENFORCED"
    )
    (result,) = run(
        f"{declared(columns)}INSERT INTO p SELECT *, typeof(day), typeof(size) FROM src WHERE id = 1"
    )
    assert result["columns"][:8] == ["id", "total", "price", "file", "day", "ts", "twice", "size"]
    (row,) = result["preview"]
    size = str((tmp_path / "in.csv").stat().st_size)
    assert row[:3] == ["1", "21.00", "10.50"]
    assert row[4:] == ["2026-01-02", "2026-01-02 03:04:05", "22.00", size, "string", "int"]
    (found,) = run(
        f"{declared(columns)}INSERT INTO p SELECT count(*) FROM src WHERE file LIKE 'file:%/in.csv'"
    )
    assert found["preview"] == [["2"]]


def test_columns_that_are_not_stored_are_not_written(run: Run) -> None:
    results = run(
        f"""{declared(STORED)}
        CREATE TABLE t (id INT, twice AS id * 2) USING parquet OPTIONS (path 'out');
        INSERT INTO t SELECT id FROM src;
        INSERT INTO p SELECT id, twice FROM t ORDER BY id;
        CREATE TABLE again USING parquet OPTIONS (path 'out');
        INSERT INTO p SELECT * FROM again ORDER BY id;
        """
    )
    assert [result["preview"] for result in results[1:]] == [[["1", "2"], ["2", "4"]], [["1"], ["2"]]]


@pytest.mark.parametrize("condition", ["price > 0", "id < 2", "nullif(id, 2) > 0"])
@pytest.mark.parametrize("use", ["count(*)", "id", "1"])
def test_a_row_that_violates_an_expectation_fails_the_read_whatever_the_query_uses(
    run: Run, condition: str, use: str
) -> None:
    columns = f"{STORED}, CONSTRAINT c EXPECT ({condition}) ON VIOLATION FAIL"
    with pytest.raises(SqlError, match=r"a row of table 'src' violates 'c': ") as caught:
        run(f"{declared(columns)}INSERT INTO p SELECT {use} FROM src")
    assert caught.value.line == 3
    assert run(f"{declared(columns)}INSERT INTO p SELECT {use} FROM src WHERE id = 1")[0]["rows"] == 1


def test_a_row_that_violates_an_expectation_of_a_target_is_not_written(run: Run, tmp_path: Path) -> None:
    target = "CREATE TABLE t (id INT, CONSTRAINT c EXPECT (id < 2) ON VIOLATION FAIL) USING parquet "
    script = f"{declared(STORED)}{target}OPTIONS (path 'out');\nINSERT INTO t SELECT id FROM src"
    with pytest.raises(SqlError, match="a row of table 't' violates 'c': id < 2"):
        run(script)
    assert not (tmp_path / "out").exists()
    assert run(f"{script} WHERE id < 2")[0]["rows"] == 1


@pytest.mark.parametrize(
    ("columns", "line", "column", "message"),
    [
        (f"{STORED},\n  total AS prize * 2", 2, 12, "prize"),
        (f"{STORED},\n  total AS price * * 2", 2, 22, "Syntax error"),
        (f"{STORED},\n  CONSTRAINT c EXPECT (prize > 0) ON VIOLATION FAIL", 2, 24, "prize"),
    ],
)
def test_an_error_in_a_declaration_points_at_its_place(
    run: Run, columns: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        run(f"{declared(columns)}INSERT INTO p SELECT * FROM src")
    assert (caught.value.line, caught.value.column) == (line, column)
