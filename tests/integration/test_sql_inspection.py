# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Statements that show or check data and write nothing, in Spark."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.driver.outcome import is_permanent
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
    [("SELECT id,\n nope FROM src", "nope"), ("SELECT 1 /\n id FROM src", "1 /"), ("SELECT 1 +", ";")],
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


# ASSERT


def test_a_script_goes_on_behind_conditions_that_are_true(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    reports: list[str] = []
    run(
        f"""{SOURCE}CREATE VIEW v AS TABLE src;
        ASSERT (SELECT count(*) FROM v) > 0, 'v has rows';
        ASSERT EXISTS (TABLE v) AND NOT EXISTS (SELECT 1 FROM v WHERE id > 1);
        SELECT 'done' AS a""",
        reports=reports,
    )
    assert capsys.readouterr().out == "a\n----\ndone\n"
    assert reports == ["CREATE TABLE src", *(f"ASSERT of line {line}" for line in (3, 4)), "query of line 5"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "ASSERT (SELECT count(*) FROM src) > 2",
            "ASSERT failed: (SELECT count(*) FROM src) > 2 is false",
        ),
        ("ASSERT (SELECT max(id) > 5 FROM src WHERE false)", "is NULL"),
        ("ASSERT NULL", "ASSERT failed: NULL is NULL"),
        ("ASSERT 1 > 2, 'one is ''more'''", "ASSERT failed: one is 'more' (the condition is false)"),
        ("ASSERT 1 > NULL, 'one'", "ASSERT failed: one (the condition is NULL)"),
    ],
)
def test_a_condition_that_is_not_true_fails_the_job_at_its_assert(
    run: Run, tmp_path: Path, statement: str, message: str
) -> None:
    with pytest.raises(SqlError) as caught:
        run(
            f"""{SOURCE}CREATE TABLE t USING parquet OPTIONS (path 'out');
            INSERT INTO t SELECT 1 AS a;
  {statement};
            INSERT INTO t SELECT 2 AS a"""
        )
    assert caught.value.message.endswith(message)
    assert (caught.value.line, caught.value.column) == (4, 3)
    assert len(list(tmp_path.glob("out/part-*"))) == 1
    assert not is_permanent(caught.value)  # the next attempt may find other data


@pytest.mark.parametrize(
    ("statement", "marked", "message"),
    [
        ("ASSERT\n nope > 0", "nope", "[UNRESOLVED_COLUMN"),
        ("ASSERT (SELECT count(*)\n FROM srcc) > 0", "srcc", "[TABLE_OR_VIEW_NOT_FOUND]"),
        ("ASSERT 1 >\n % 0", "%", "[PARSE_SYNTAX_ERROR]"),
        ("ASSERT true FROM src", "FROM", "[PARSE_SYNTAX_ERROR]"),
        ("ASSERT (SELECT 1 /\n id = 1 FROM src WHERE id = 0)", "(SELECT 1", "[DIVIDE_BY_ZERO]"),
        ("ASSERT\n 1", "1", "must be a BOOLEAN, this is INT"),
        ("ASSERT *", "*", "must be a BOOLEAN, this is no value"),
        ("ASSERT explode(array(true, true))", "explode", "must have one value"),
        ("ASSERT (SELECT id = 1 FROM src)", "(SELECT", "[SCALAR_SUBQUERY_TOO_MANY_ROWS]"),
    ],
)
def test_an_error_in_a_condition_points_at_its_place(
    run: Run, statement: str, marked: str, message: str
) -> None:
    text = f"{SOURCE}CREATE VIEW v AS SELECT 1 AS one;\n{statement};"
    with pytest.raises(SqlError) as caught:
        run(text)
    error, offset = caught.value, text.index(marked, text.index("ASSERT"))
    place = (text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
    assert (error.line, error.column) == place, str(error)
    assert message in error.message
    assert "Exception thrown in" not in error.message


# EXPLAIN


def test_explain_shows_a_plan_and_writes_nothing(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = run(
        f"""{SOURCE}CREATE TABLE t (n BIGINT) USING parquet OPTIONS (path 'out');
        EXPLAIN SELECT id + 41 FROM src; EXPLAIN EXTENDED INSERT INTO t SELECT id + 42 FROM src;
        EXPLAIN FORMATTED INSERT OVERWRITE t BY NAME SELECT 1 AS n; EXPLAIN COST SELECT 1;
        EXPLAIN CODEGEN SELECT 1"""
    )
    shown = capsys.readouterr().out
    assert results == []
    assert not (tmp_path / "out").exists()
    assert "== Physical Plan ==" in shown
    assert "+ 41" in shown
    assert "== Optimized Logical Plan ==" in shown
    assert "AS n#" in shown
    assert "as bigint" in shown
    with pytest.raises(SqlError, match="the query has 2 columns"):
        run("CREATE TABLE t (n BIGINT) USING parquet OPTIONS (path 'out'); EXPLAIN INSERT INTO t SELECT 1, 2")
    with pytest.raises(SqlError, match="UNRESOLVED_COLUMN") as caught:
        run("EXPLAIN SELECT 1,\n nope")
    assert (caught.value.line, caught.value.column) == (2, 2)


# CACHE TABLE


def is_cache_empty(spark: SparkSession) -> bool:
    state: Any = spark._jsparkSession.sharedState()  # noqa: SLF001 - PySpark has no public way to it
    return bool(state.cacheManager().isEmpty())


FILES = """\
CREATE TABLE t USING parquet OPTIONS (path 'out');
INSERT INTO t SELECT 1 AS a;
CREATE VIEW v AS SELECT a + 1 AS a FROM t;
"""


def test_cached_names_are_read_from_the_cache_and_show_what_the_script_writes(
    run: Run, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    reports: list[str] = []
    run(
        f"""{FILES}CACHE TABLE t; CACHE LAZY TABLE v; EXPLAIN SELECT * FROM v; INSERT INTO t SELECT 2 AS a;
        SELECT sum(a) AS first FROM v; UNCACHE TABLE v; UNCACHE TABLE t; UNCACHE TABLE t;
        EXPLAIN SELECT * FROM v;
        SELECT sum(a) AS last FROM v""",
        reports=reports,
    )
    shown = capsys.readouterr().out
    before, after = shown.split("first\n-----\n5\n")
    assert "InMemoryRelation" in before
    assert "InMemoryRelation" not in after
    assert after.endswith("last\n----\n5\n")
    assert "CACHE TABLE t" in reports
    assert is_cache_empty(spark)


@pytest.mark.parametrize(
    "end", ["SELECT 1", "ASSERT false", "CREATE OR REPLACE VIEW v AS SELECT 1; SELECT 1"]
)
def test_nothing_is_cached_when_a_script_ends(run: Run, spark: SparkSession, end: str) -> None:
    with contextlib.suppress(SqlError):
        run(f"{FILES}CACHE TABLE v; CACHE TABLE t; {end}")
    assert is_cache_empty(spark)


def test_an_error_while_rows_are_cached_points_at_its_place(run: Run) -> None:
    with pytest.raises(SqlError, match="DIVIDE_BY_ZERO") as caught:
        run("CREATE VIEW v AS\n SELECT 1 / id AS x FROM range(2);\nCACHE TABLE v; SELECT 1")
    assert (caught.value.line, caught.value.column) == (2, 9)
    with pytest.raises(SqlError, match="caching 't' failed") as caught:
        run("CREATE TABLE t USING parquet OPTIONS (path 'none');\nCACHE TABLE t; INSERT INTO t SELECT 1 AS a")
    assert (caught.value.line, caught.value.column) == (2, 1)
