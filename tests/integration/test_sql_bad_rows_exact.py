"""No row is lost or counted twice: partitions, caches, nested values, equal names, several rules."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Run = Callable[..., list[dict[str, Any]]]
LIMIT = "SET job.error.limit.rows = 9;"
OUT = "CREATE TABLE dst USING json OPTIONS (path 'out');"
SRC = "CREATE TABLE src (n INT) USING csv OPTIONS (path '{path}');"
REJECTS = (
    "SET job.quarantine = rejects;"
    "CREATE TABLE rejects (record STRING) USING parquet OPTIONS (path 'rejects');"
)


@pytest.fixture
def run(spark: "SparkSession", tmp_path: Path) -> Run:
    """Run a script; returns what it says of bad rows."""
    (tmp_path / "in.csv").write_text("n\n1\nx\n20\n", "utf-8")

    def run_script(*parts: str) -> list[dict[str, Any]]:
        plan = compile_script("".join(parts), file="s.sql", base_dir=str(tmp_path), variables={})
        plan["quarantine"] = f"file:{tmp_path}/bad"
        bad = list[dict[str, Any]]()
        execute(spark, plan, lambda _phase: None, Writer("run"), bad_rows=bad)
        return bad

    return run_script


def counted(bad: Sequence[Mapping[str, Any]]) -> list[tuple[str, int, int, int]]:
    return [(each["table"], each["rows"], each["quarantined"], each["dropped"]) for each in bad]


def written(spark: "SparkSession", folder: Path) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.read.json(str(folder)).collect())


def aside(spark: "SparkSession", folder: Path) -> list[str]:
    return sorted(
        row["record"] for place in folder.iterdir() for row in spark.read.parquet(str(place)).collect()
    )


def test_records_of_partitioned_files(run: Run, spark: "SparkSession", tmp_path: Path) -> None:
    for day, text in (("1", "n\n1\nx\n"), ("2", "n\n3\n")):
        (tmp_path / "in" / f"day={day}").mkdir(parents=True)
        (tmp_path / "in" / f"day={day}" / "a.csv").write_text(text, "utf-8")
    src = "CREATE TABLE src (day INT, n INT) USING csv OPTIONS (path 'in');"
    bad = run(LIMIT, src, OUT, "INSERT OVERWRITE dst SELECT * FROM src;")
    assert written(spark, tmp_path / "out") == [(1, 1), (2, 3)]
    assert counted(bad) == [("src", 3, 1, 0)]


def test_columns_found_in_files_are_the_same_at_each_declaration(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    src = "CREATE TABLE src USING csv OPTIONS (path 'in.csv');"
    run(LIMIT, src, OUT, "CACHE TABLE src; INSERT INTO dst TABLE src; UNCACHE TABLE src; TABLE src;")
    assert written(spark, tmp_path / "out") == [("1",), ("20",), ("x",)]


def test_a_cached_table_of_a_statement_set_counts_once(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    src = SRC.format(path="in.csv").replace(
        "n INT", "n INT, CONSTRAINT small EXPECT (n < 10) ON VIOLATION QUARANTINE"
    )
    more = "CREATE TABLE more USING json OPTIONS (path 'more'); CACHE TABLE src; EXECUTE STATEMENT SET BEGIN"
    bad = run(LIMIT, src, OUT, more, " INSERT INTO dst TABLE src; INSERT INTO more TABLE src; END;")
    assert counted(bad) == [("src", 3, 2, 0)]
    assert written(spark, tmp_path / "out") == [(1,)] == written(spark, tmp_path / "more")


def test_a_table_that_is_used_with_other_options_alone_is_not_read_without_them(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "two.csv").write_text("n;m\n1;2\nx;3\n", "utf-8")
    src = "CREATE TABLE src (n INT, m INT) USING csv OPTIONS (path 'two.csv');"
    bad = run(LIMIT, src, OUT, "INSERT INTO dst SELECT n, m FROM src WITH ('delimiter' = ';');")
    assert written(spark, tmp_path / "out") == [(2, 1)], "JSON orders by name: m, n"
    assert counted(bad) == [("src (options 1)", 2, 1, 0)]


def test_inserts_in_one_line_are_counted_apart(run: Run, spark: "SparkSession", tmp_path: Path) -> None:
    insert = "INSERT INTO dst VALUES ('{}'), ('{}');"
    bad = run(LIMIT, OUT.replace("dst", "dst (n INT)"), insert.format("a", 1), insert.format(2, 3))
    bad += run(LIMIT, OUT.replace("dst", "dst (n INT)"), insert.format("a", 1), insert.format("b", 2))
    assert counted(bad[:2]) == [("dst (line 1)", 2, 1, 0), ("dst (line 1)", 2, 0, 0)]
    assert counted(bad[2:]) == [("dst (line 1)", 2, 1, 0), ("dst (line 1)", 2, 1, 0)]
    assert aside(spark, tmp_path / "bad") == ['{"n":"a"}', '{"n":"b"}'], "the values that the query gave"


def test_a_name_that_is_declared_twice_is_counted_for_each_table(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "b.csv").write_text("n\n1\ny\nz\nq\n", "utf-8")
    insert, again = (
        "INSERT INTO dst TABLE src;",
        SRC.format(path="b.csv").replace("CREATE", "CREATE OR REPLACE"),
    )
    bad = run(LIMIT, SRC.format(path="in.csv"), OUT, insert, again, insert)
    assert counted(bad) == [("src", 3, 1, 0), ("src", 4, 3, 0)]
    assert aside(spark, tmp_path / "bad") == ["q", "x", "y", "z"]


def test_a_value_inside_of_another_is_not_replaced_by_null(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    columns = "n INT, l ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<a: INT, l: ARRAY<STRUCT<x: INT>>>"
    bad = run(
        LIMIT,
        OUT.replace("dst", f"dst ({columns})"),
        "INSERT INTO dst VALUES (1, array('1', 'x'), NULL, NULL),",
        " (2, NULL, map('a', 'x'), NULL),",
        " (3, NULL, NULL, named_struct('a', 'x', 'l', NULL)),",
        " (4, NULL, NULL, named_struct('a', '1', 'l', array(named_struct('x', 'x')))),",
        " (5, array('1', NULL), map('a', '1', 'b', NULL),"
        " named_struct('a', '1', 'l', array(named_struct('x', '5'), NULL)));",
    )
    assert counted(bad) == [("dst (line 1)", 5, 4, 0)]
    assert [row["n"] for row in spark.read.json(str(tmp_path / "out")).collect()] == [5]


@pytest.mark.parametrize("is_target", [False, True])
def test_a_rule_that_fails_the_job_does_so_before_a_later_one_drops_the_row(
    run: Run, *, is_target: bool
) -> None:
    table = (
        "CREATE TABLE {name} (n INT, CONSTRAINT filled EXPECT (n IS NOT NULL) ON VIOLATION FAIL,"
        " CONSTRAINT small EXPECT (n < 5) ON VIOLATION DROP ROW) USING {rows};"
    )
    target = table.format(name="dst", rows="json OPTIONS (path 'out')")
    source = table.format(name="src", rows="inline OPTIONS (rows '[[1], [null]]')")
    parts = (
        [target, "INSERT INTO dst VALUES (1), (NULL);"]
        if is_target
        else [source, OUT, "INSERT INTO dst TABLE src;"]
    )
    with pytest.raises(SqlError, match="violates 'filled'"):
        run(*parts)


@pytest.mark.parametrize("name", ["..", "x" * 300])
def test_no_name_of_a_table_leads_out_of_the_quarantine(run: Run, tmp_path: Path, name: str) -> None:
    bad = run(LIMIT, SRC.format(path="in.csv").replace("src", f"`{name}`"), f"TABLE `{name}`;")
    assert (tmp_path / "in.csv").exists()
    assert Path(bad[0]["place"].removeprefix("file:")).resolve().parent == tmp_path / "bad"


def test_a_script_can_read_the_rows_that_were_set_aside(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    run(LIMIT, REJECTS, SRC.format(path="in.csv"), OUT, "INSERT INTO dst SELECT record FROM rejects;")
    assert written(spark, tmp_path / "out") == [("x",)]


@pytest.mark.parametrize("columns", ["", " (record STRING, at TIMESTAMP)"])
def test_a_script_that_reads_them_works_without_any(
    run: Run, spark: "SparkSession", tmp_path: Path, columns: str
) -> None:
    rejects = REJECTS.replace(" (record STRING)", columns)
    query = "INSERT INTO dst SELECT count(record) AS n, count(at) AS at FROM rejects;"
    run(LIMIT, rejects, SRC.format(path="in.csv").replace("n INT", "n STRING"), OUT, "TABLE src;", query)
    assert written(spark, tmp_path / "out") == [(0, 0)]


@pytest.mark.parametrize("into", ["OVERWRITE rejects", "OVERWRITE other", "INTO rejects"])
def test_no_insert_can_delete_the_rows_that_were_set_aside(run: Run, into: str) -> None:
    other = "CREATE TABLE other USING parquet OPTIONS (path 'rejects');"
    script = (
        LIMIT,
        REJECTS,
        other,
        SRC.format(path="in.csv"),
        f"TABLE src; INSERT {into} SELECT 'a' AS record;",
    )
    with pytest.raises(SqlError, match="takes the rows that do not fit"):
        run(*script)
