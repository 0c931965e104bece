"""Counts of streams whose tables or INSERTs have equal names: each has its own numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.stream_driver import plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = "SET job.mode = 'available-now';\n"
LIMIT = "SET job.error.limit.rows = {};\n"
SRC = "CREATE OR REPLACE TABLE src (id INT, age INT, CONSTRAINT r EXPECT (age >= {}) ON VIOLATION {})"
SRC += " USING csv OPTIONS (path 'in');\n"
OUT = "CREATE TABLE {0} (id TINYINT) USING json OPTIONS (path '{0}');\n"

Numbers = tuple[str, int, int, int]
Run = Callable[..., list[Numbers]]


@pytest.fixture
def run(spark: "SparkSession", tmp_path: Path) -> Run:
    """Run a script; returns table, rows, quarantined and dropped ones."""

    def run_script(*parts: str, attempt: int = 1) -> list[Numbers]:
        bad, plan = list[dict[str, Any]](), plan_of("".join(parts), tmp_path)
        execute(spark, plan, lambda _: None, Writer("run", attempt), bad_rows=bad)
        return sorted((each["table"], each["rows"], each["quarantined"], each["dropped"]) for each in bad)

    return run_script


def aside(spark: "SparkSession", folder: Path) -> list[str]:
    return sorted(row["record"] for row in spark.read.parquet(str(folder)).collect())


def add_file(folder: Path, *lines: str) -> None:
    (folder / "in").mkdir(exist_ok=True)
    file = folder / f"{len(list((folder / 'in').iterdir()))}.csv"
    file.write_text("\n".join(("id,age", *lines)), "utf-8")
    file.rename(folder / "in" / file.name)


@pytest.mark.parametrize("in_set", [False, True])
def test_two_inserts_of_one_line_count_their_own_rows(
    run: Run, spark: "SparkSession", tmp_path: Path, *, in_set: bool
) -> None:
    add_file(tmp_path, "1,30", "300,30")
    copies = "INSERT INTO out SELECT id FROM src; INSERT INTO out SELECT id FROM src WHERE id > 2;"
    script = (SRC.format(18, "DROP ROW"), OUT.format("out"), copies)
    if in_set:
        script = (*script[:2], f"BEGIN STATEMENT SET; {copies} END;")
    with pytest.raises(SqlError, match="2 rows do not fit"):
        run(NOW, LIMIT.format(1), *script)
    found = run(NOW, LIMIT.format(2), *script, attempt=2)
    assert found == [("out (line 5)", 1, 1, 0), ("out (line 5)", 2, 1, 0), ("src", 2, 0, 0)]
    place = tmp_path / "checkpoints" / "job" / ".quarantine" / "out%20%28line%205%29"
    assert aside(spark, place) == ['{"id":300}', '{"id":300}']


def test_a_table_that_replaces_another_one_counts_its_own_rows(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    add_file(tmp_path, "1,30", "2,5", "3,x")
    copies = ("INSERT INTO a SELECT id FROM src;\n", "INSERT INTO b SELECT id FROM src;\n")
    first, second = SRC.format(18, "DROP ROW"), SRC.format(40, "QUARANTINE")
    found = run(NOW, LIMIT.format(4), first, OUT.format("a"), copies[0], second, OUT.format("b"), copies[1])
    assert [each for each in found if each[0] == "src"] == [("src", 3, 1, 1), ("src", 3, 3, 0)]
    place = tmp_path / "checkpoints" / "job" / ".quarantine" / "src"
    assert aside(spark, place) == ["3,x", "3,x", '{"id":1,"age":30}', '{"id":2,"age":5}']
