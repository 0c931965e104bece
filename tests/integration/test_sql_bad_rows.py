"""Rows that do not fit: counted exactly, set aside with their reason, and limited."""

import json
from collections.abc import Callable
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

RAW = "id,name,age\n1,ann,30\n2,bob,x\n3,cid,-5\n4,dee\n5,eve,50\n"
PEOPLE = "CREATE TABLE src (id INT, name STRING, age INT{rule}) USING csv OPTIONS (path 'in');"
OUT = "CREATE TABLE dst USING parquet OPTIONS (path 'out');"
ALL = "INSERT OVERWRITE dst SELECT * FROM src;"

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(spark: "SparkSession", tmp_path: Path) -> Run:
    """Run a script; returns what it says of bad rows."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "people.csv").write_text(RAW, "utf-8")

    def run_script(*parts: str, attempt: int = 1) -> list[dict[str, Any]]:
        plan = compile_script("".join(parts), file="s.sql", base_dir=str(tmp_path), variables={})
        plan["quarantine"] = f"file:{tmp_path}/bad"
        bad = list[dict[str, Any]]()
        execute(spark, plan, lambda _phase: None, Writer("run", attempt), bad_rows=bad)
        return bad

    return run_script


def written(spark: "SparkSession", tmp_path: Path) -> list[int]:
    return sorted(row["id"] for row in spark.read.parquet(str(tmp_path / "out")).collect())


def aside(spark: "SparkSession", folder: Path) -> list[tuple[str, str]]:
    rows = spark.read.parquet(str(folder)).collect()
    return sorted((row["rule"], row["record"]) for row in rows)


def test_without_a_limit_a_record_that_cannot_be_decoded_fails_the_job(run: Run) -> None:
    with pytest.raises(SqlError, match="does not fit the declared columns"):
        run(PEOPLE.format(rule="") + OUT + ALL)


def test_with_a_limit_such_records_are_set_aside_with_their_text_and_file(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    bad = run("SET job.error.limit.rows = 2;" + PEOPLE.format(rule="") + OUT + ALL)
    assert written(spark, tmp_path) == [1, 3, 5]
    place = f"file:{tmp_path}/bad/src"
    assert bad == [{"table": "src", "rows": 5, "quarantined": 2, "dropped": 0, "place": place}]
    assert aside(spark, tmp_path / "bad" / "src") == [("decoding", "2,bob,x"), ("decoding", "4,dee")]
    row = spark.read.parquet(str(tmp_path / "bad" / "src")).first()
    assert row is not None
    assert row["file"].endswith("in/people.csv")
    assert (row["run"], row["attempt"], row["source"]) == ("run", "1", "src")


@pytest.mark.parametrize("columns", ["id", "name", "count(*) AS n"])
def test_a_query_of_some_columns_sees_the_same_rows(
    run: Run, spark: "SparkSession", tmp_path: Path, columns: str
) -> None:
    text = "SET job.error.limit.rows = 2;" + PEOPLE.format(rule="") + OUT
    run(text, ALL.replace("*", columns))
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert (rows[0]["n"] if "n" in rows[0] else len(rows)) == 3


def test_records_of_json_are_decoded_alike_for_each_query(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    lines = ['{"id": 1, "age": 3}', '{"id": 2, "age": "x"}', "{broken", '{"id": 4}']
    (tmp_path / "lines.json").write_text("\n".join(lines), "utf-8")
    bad = run(
        "SET job.error.limit.percent = 50;"
        "CREATE TABLE src (id INT, age INT) USING json OPTIONS (path 'lines.json');",
        OUT,
        ALL.replace("*", "id"),
    )
    assert written(spark, tmp_path) == [1, 4]
    assert [(each["rows"], each["quarantined"]) for each in bad] == [(4, 2)]
    assert aside(spark, tmp_path / "bad" / "src") == [("decoding", lines[1]), ("decoding", "{broken")]


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("rows = 1", "2 rows do not fit, and job.error.limit.rows is 1"),
        ("percent = 39.9", "2 of 5 rows do not fit, and job.error.limit.percent is 39.9"),
    ],
)
def test_above_a_limit_the_job_fails_before_it_writes_and_the_rows_can_be_seen(
    run: Run, spark: "SparkSession", tmp_path: Path, limit: str, said: str
) -> None:
    with pytest.raises(SqlError) as caught:
        run(f"SET job.error.limit.{limit};" + PEOPLE.format(rule="") + OUT + ALL)
    assert said in caught.value.message
    assert not (tmp_path / "out").exists()
    assert len(aside(spark, tmp_path / "bad" / "src")) == 2


def test_a_limit_that_is_just_met_is_no_failure(run: Run) -> None:
    assert run("SET job.error.limit.percent = 40;" + PEOPLE.format(rule="") + OUT + ALL)


NUMBERS = "INSERT INTO dst SELECT id AS n FROM range(1, 6);"
RULE = ", CONSTRAINT adult EXPECT (age >= 18) ON VIOLATION {action}"


@pytest.fixture
def good_files(tmp_path: Path, run: Run) -> None:  # noqa: ARG001 - it has written other files
    (tmp_path / "in" / "people.csv").write_text("id,name,age\n1,ann,30\n3,cid,-5\n6,fay,\n", "utf-8")


@pytest.mark.usefixtures("good_files")
def test_an_expectation_sets_rows_aside_or_drops_them(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    bad = run(PEOPLE.format(rule=RULE.format(action="QUARANTINE")) + OUT + ALL)
    assert written(spark, tmp_path) == [1]
    assert [(each["rows"], each["quarantined"], each["dropped"]) for each in bad] == [(3, 2, 0)]
    records = [json.loads(record) for _, record in aside(spark, tmp_path / "bad" / "src")]
    assert sorted((each["id"], each["age"]) for each in records if each["age"]) == [(3, -5)]
    bad = run(PEOPLE.format(rule=RULE.format(action="DROP ROW")) + OUT + ALL)
    assert [(each["quarantined"], each["dropped"], each["place"]) for each in bad] == [(0, 2, "")]
    assert written(spark, tmp_path) == [1]
    with pytest.raises(SqlError, match="violates 'adult'"):
        run(PEOPLE.format(rule=RULE.format(action="FAIL")) + OUT + ALL)


@pytest.mark.usefixtures("good_files")
def test_the_rows_of_an_insert_are_split_by_the_rules_of_its_table(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    rule = ", CONSTRAINT adult EXPECT (age >= 18) ON VIOLATION QUARANTINE"
    dst = f"CREATE TABLE dst (id INT, age INT{rule}) USING parquet OPTIONS (path 'out');"
    bad = run(PEOPLE.format(rule=""), dst, ALL.replace("*", "id, age"))
    assert written(spark, tmp_path) == [1]
    assert [(each["table"], each["rows"], each["quarantined"]) for each in bad] == [("dst (line 1)", 3, 2)]


def test_values_that_a_column_cannot_hold_are_set_aside_with_a_limit(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    text = (
        'CREATE TABLE src (id INT, text STRING) USING inline OPTIONS (rows \'[[1,"7"],[2,"x"],[3,null]]\');'
        "CREATE TABLE dst (id INT, n INT {null}) USING parquet OPTIONS (path 'out');"
        "INSERT OVERWRITE dst SELECT id, text FROM src;"
    )
    with pytest.raises(SqlError, match="CAST_INVALID_INPUT"):
        run(text.format(null=""))
    run("SET job.error.limit.rows = 1;" + text.format(null=""))
    assert written(spark, tmp_path) == [1, 3]
    run("SET job.error.limit.rows = 2;" + text.format(null="NOT NULL"))
    assert written(spark, tmp_path) == [1]


def test_a_table_of_the_script_takes_the_rows_and_a_further_attempt_replaces_them(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    text = (
        "SET job.error.limit.rows = 9; SET job.quarantine = rejects;"
        "CREATE TABLE rejects (record STRING, source STRING) USING json OPTIONS (path 'rejects');"
        + PEOPLE.format(rule="")
        + OUT
        + ALL
    )
    for attempt in (1, 2):
        bad = run(text, attempt=attempt)
        assert [each["place"] for each in bad] == [str(tmp_path / "rejects")]
        rows = spark.read.json(str(tmp_path / "rejects")).collect()
        assert sorted(row["record"] for row in rows) == ["2,bob,x", "4,dee"]
        assert written(spark, tmp_path) == [1, 3, 5]


def test_a_further_attempt_replaces_the_rows_that_an_earlier_one_set_aside(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    text = "SET job.error.limit.rows = 9;" + PEOPLE.format(rule="") + OUT + ALL
    run(text, attempt=1)
    run(text, attempt=2)
    assert len(aside(spark, tmp_path / "bad" / "src")) == 2


def rejecting(tmp_path: Path, settings: str) -> dict[str, Any]:
    """The plan of a script whose target rejects two of five rows."""
    text = f"{settings} CREATE TABLE dst USING print; {NUMBERS}"
    plan = compile_script(text, file="s.sql", base_dir=str(tmp_path), variables={})
    (table,) = (step for step in plan["steps"] if step["kind"] == "table")
    table["connector"] = "rejecting"
    parts = {"rejecting": {"source": "", "sink": "tests.rejecting_sink:RejectingSink"}}
    return {**plan, "connectors": parts, "quarantine": f"file:{tmp_path}/bad"}


def test_rows_that_a_target_rejects_are_set_aside_and_limited(spark: "SparkSession", tmp_path: Path) -> None:
    bad = list[dict[str, Any]]()
    plan = rejecting(tmp_path, "SET job.error.limit.rows = 2;")
    results = execute(spark, plan, lambda _phase: None, bad_rows=bad)
    assert [(each["rows"], each["preview"]) for each in results] == [(3, [])]
    assert [(each["table"], each["quarantined"]) for each in bad] == [("dst (line 1)", 2)]
    folder = next((tmp_path / "bad").iterdir())
    assert aside(spark, folder) == [("target", "2"), ("target", "4")]
    for settings, said in (
        ("SET job.error.limit.rows = 1;", "2 rows do not fit, and job.error.limit.rows is 1"),
        ("SET job.error.limit.percent = 39;", "2 of 5 rows do not fit, and job.error.limit.percent is 39"),
        ("", "the target has rejected 2 rows"),
    ):
        with pytest.raises(SqlError) as caught:
            execute(spark, rejecting(tmp_path, settings), lambda _phase: None)
        assert said in caught.value.message


def test_the_columns_that_files_have_are_found_once_and_without_those_of_the_check(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "in" / "people.csv").write_text("id,name,age\n1,ann,30\n2,bob,x\n", "utf-8")
    bad = run(
        "SET job.error.limit.rows = 1; CREATE TABLE src USING csv OPTIONS (path 'in');",
        OUT,
        "CACHE TABLE src;",
        ALL,
        "ASSERT (SELECT count(*) FROM src) = 2;",
    )
    assert bad == []
    assert spark.read.parquet(str(tmp_path / "out")).columns == ["id", "name", "age"]


def test_columns_of_partitions_and_in_any_order_keep_their_verdicts(
    run: Run, spark: "SparkSession", tmp_path: Path
) -> None:
    (tmp_path / "parts" / "day=1").mkdir(parents=True)
    (tmp_path / "parts" / "day=1" / "a.csv").write_text("id,age\n1,3\n2,x\n", "utf-8")
    bad = run(
        "SET job.error.limit.rows = 1;"
        "CREATE TABLE src (day INT, id INT, age INT) USING csv OPTIONS (path 'parts', partition_by 'day');",
        OUT,
        ALL,
    )
    assert written(spark, tmp_path) == [1]
    assert [(each["rows"], each["quarantined"]) for each in bad] == [(2, 1)]
    assert aside(spark, tmp_path / "bad" / "src") == [("decoding", "2,x")]
