# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""The analysis of a script against empty frames, in Spark."""

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.text.built_ins import values_of
from tests.another_user import as_another_user

pytestmark = pytest.mark.spark

PROJECT = Path(__file__).parents[2]
DOCS = re.findall(
    r"^```sql\n(.*?)^```$", (PROJECT / "docs" / "sql.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)
Explain = Callable[..., dict[str, Any]]
SOURCE = """\
CREATE TABLE src (id INT, name STRING, at TIMESTAMP, price DECIMAL(10, 4)) USING csv OPTIONS (path 'in');
"""


@pytest.fixture
def explain(spark: SparkSession, tmp_path: Path) -> Explain:
    def explain_script(text: str, folder: Path = tmp_path, **options: bool) -> dict[str, Any]:
        plan = compile_script(text, file="s.sql", base_dir=str(folder), variables={})
        plan["built_ins"] = values_of("00000000-0000-0000-0000-000000000000", 1, datetime.now(UTC))
        report = analyse_script(
            spark,
            json.loads(json.dumps(plan)),
            connect=options.get("connect", False),
            with_plan=options.get("with_plan", False),
        )
        return json.loads(json.dumps(report))  # type: ignore[no-any-return]  # it is what travels

    return explain_script


def messages(found: list[dict[str, Any]]) -> list[str]:
    return [error["message"] for error in found]


def places(found: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(error["line"], error["column"]) for error in found]


def target(columns: str, insert: str) -> str:
    return f"{SOURCE}CREATE TABLE t ({columns}) USING parquet OPTIONS (path 'out');\n{insert};"


# No false alarms


@pytest.mark.parametrize("number", range(len(DOCS)))
def test_the_scripts_of_the_documentation_have_no_errors(number: int, explain: Explain) -> None:
    assert explain(DOCS[number])["errors"] == []


def test_a_source_with_declared_columns_is_not_read(explain: Explain, tmp_path: Path) -> None:
    report = explain(f"{SOURCE}CREATE VIEW v AS SELECT id + 1 AS n FROM src; SELECT n FROM v;")
    assert report["errors"] == report["contacted"] == []
    assert report["statements"] == [
        {
            "kind": "query",
            "line": 2,
            "column": 47,
            "columns": [{"name": "n", "type": "INT", "into": None}],
        }
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_source_without_columns_is_read_for_them_alone(
    explain: Explain, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("SELECT 1 AS a, 'x' AS b").write.parquet(str(tmp_path / "in"))
    report = explain("CREATE TABLE s USING parquet OPTIONS (path 'in'); SELECT b FROM s;")
    assert report["contacted"] == ["s"]
    assert report["statements"][0]["columns"] == [{"name": "b", "type": "STRING", "into": None}]
    missing = explain("CREATE TABLE s USING parquet OPTIONS (path 'nowhere'); SELECT b FROM s;")
    assert len(missing["errors"]) == 1  # the query is not analysed
    assert missing["statements"][0]["skipped"] == "'s' has an error"


def test_a_statement_sees_the_columns_that_an_earlier_insert_leaves(explain: Explain) -> None:
    text = f"""{SOURCE}
    CREATE TABLE t USING parquet OPTIONS (path 'out');
    INSERT OVERWRITE t SELECT id, price * 2 AS doubled FROM src;
    SELECT doubled, nope FROM t;"""
    report = explain(text)
    assert len(report["errors"]) == 1
    assert "`nope`" in report["errors"][0]["message"]


def test_files_that_the_script_writes_before_are_no_error(explain: Explain, tmp_path: Path) -> None:
    text = f"""{SOURCE}
    CREATE TABLE t USING parquet OPTIONS (path 'out');
    INSERT OVERWRITE t SELECT id FROM src;
    SELECT id FROM parquet.`{tmp_path}/out`;"""
    report = explain(text)
    assert report["errors"] == []
    assert report["statements"][1]["skipped"] == "it names files that the script may write before"


# All errors, with their places


def test_all_statements_are_analysed_after_an_error_and_consequences_are_left_out(explain: Explain) -> None:
    text = f"""{SOURCE}CREATE VIEW bad AS SELECT nope FROM src;
CREATE VIEW worse AS SELECT * FROM bad;
SELECT id,
  wrong(id) FROM src;
SELECT * FROM worse;
ASSERT 1;
ASSERT (SELECT count(*) FROM worse) > 1;
"""
    report = explain(text)
    assert places(report["errors"]) == [(2, 27), (5, 3), (7, 8)]
    assert [each.get("skipped") for each in report["statements"]] == [
        None,
        "'worse' is not analysed, because 'bad' has an error",
        None,
        "'worse' is not analysed, because 'bad' has an error",
    ]


def test_all_unknown_columns_of_one_query_are_reported(explain: Explain) -> None:
    text = f"{SOURCE}SELECT nam, id, src.pric, x, nam FROM src WHERE idd > 1 AND y;"
    errors = explain(text)["errors"]
    line = text.splitlines()[1]
    expected = [line.index(name) + 1 for name in ("nam,", "src.pric", "x,", "idd", "y;")]
    assert sorted(error["column"] for error in errors) == expected


def test_a_further_error_that_is_only_a_consequence_is_left_out(explain: Explain) -> None:
    # With NULL in its place the inner query has no column `nope` for the outer one.
    report = explain(f"{SOURCE}SELECT nope FROM (SELECT nope FROM src);")
    assert places(report["errors"]) == [(2, 26)]


# Columns of a target


@pytest.mark.parametrize(
    ("columns", "insert", "message", "column"),
    [
        (
            "a INT, b INT",
            "INSERT INTO t SELECT id FROM src",
            "has 1 columns (id), the table declares 2 (a, b)",
            1,
        ),
        ("id INT", "INSERT INTO t BY NAME SELECT id, name FROM src", "declares no column 'name'", 34),
        ("id INT, nam INT", "INSERT INTO t BY NAME SELECT id FROM src", "the query has no column 'nam'", 1),
        ("id INT", "INSERT INTO t BY NAME SELECT id, 1 AS id FROM src", "column 'id' more than once", 1),
        ("at DATE", "INSERT INTO t SELECT id FROM src", "INT as DATE: Spark has no cast between the two", 22),
        ("a INT", "INSERT INTO t SELECT array(id) AS a FROM src", "array<int> as INT: Spark has no cast", 22),
    ],
)
def test_columns_that_do_not_fit_are_errors(
    columns: str, insert: str, message: str, column: int, explain: Explain
) -> None:
    report = explain(target(columns, insert))
    assert len(report["errors"]) == 1
    assert message in report["errors"][0]["message"]
    assert places(report["errors"]) == [(3, column)]


@pytest.mark.parametrize(
    ("columns", "query", "words"),
    [
        ("a INT", "SELECT name AS a FROM src", "a text that is no INT ends the job"),
        ("a TINYINT", "SELECT id AS a FROM src", "a value beyond the range of TINYINT ends the job"),
        ("a DATE", "SELECT at AS a FROM src", "the time of day is lost"),
        ("a DECIMAL(10, 2)", "SELECT price AS a FROM src", "digits after the point are lost"),
        ("a DECIMAL(5, 4)", "SELECT price AS a FROM src", "a value beyond the range of DECIMAL(5,4)"),
        ("a BIGINT", "SELECT price AS a FROM src", "digits after the point are lost"),
        ("a FLOAT", "SELECT id AS a FROM src", "precision may be lost"),
        ("a DOUBLE", "SELECT price AS a FROM src", "precision may be lost"),
        ("a ARRAY<INT>", "SELECT array(name) AS a FROM src", "inside it, a text that is no INT"),
        ("a INT NOT NULL", "SELECT id AS a FROM src", "column 'a' is NOT NULL"),
        (
            "id INT, name STRING",
            "SELECT name, 'x' FROM src",
            "goes into 'id', by its position; write BY NAME",
        ),
    ],
)
def test_casts_that_may_fail_or_lose_are_warnings_at_their_column(
    columns: str, query: str, words: str, explain: Explain
) -> None:
    report = explain(target(columns, f"INSERT OVERWRITE t {query}"))
    assert report["errors"] == []
    assert words in " ".join(messages(report["warnings"]))
    assert set(places(report["warnings"])) == {(3, len("INSERT OVERWRITE t SELECT ") + 1)}


@pytest.mark.parametrize(
    ("columns", "query"),
    [
        ("a BIGINT", "SELECT id AS a FROM src"),
        ("a DOUBLE", "SELECT id AS a FROM src"),
        ("a DECIMAL(12, 2)", "SELECT id AS a FROM src"),
        ("a DECIMAL(12, 5)", "SELECT price AS a FROM src"),
        ("a STRING", "SELECT price AS a FROM src"),
        ("a TIMESTAMP", "SELECT DATE'2020-01-01' AS a"),
        ("a DATE", "SELECT NULL AS a"),
        ("a VARCHAR(3)", "SELECT name AS a FROM src"),
        ("a INT NOT NULL", "SELECT coalesce(id, 0) AS a FROM src"),
    ],
)
def test_casts_that_keep_every_value_are_no_warnings(columns: str, query: str, explain: Explain) -> None:
    report = explain(target(columns, f"INSERT OVERWRITE t {query}"))
    assert report["errors"] == report["warnings"] == []


def test_without_ansi_a_failing_cast_is_said_to_become_null(explain: Explain) -> None:
    text = target("a INT", "SET spark.sql.ansi.enabled = false;\nINSERT INTO t SELECT name FROM src")
    assert "a text that is no INT becomes NULL" in messages(explain(text)["warnings"])[0]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_with_a_limit_a_failing_cast_is_said_to_go_to_the_quarantine(explain: Explain, ansi: str) -> None:
    settings = f"SET job.error.limit.percent = 5;\nSET spark.sql.ansi.enabled = {ansi};\n"
    text = target("a TINYINT, b INT NOT NULL", f"{settings}INSERT INTO t SELECT id, id FROM src")
    cast, null = messages(explain(text)["warnings"])
    assert cast.endswith(
        "INT as TINYINT: a value beyond the range of TINYINT sends its row to the quarantine"
    )
    assert null.endswith("is NOT NULL: a row in which the query gives NULL goes to the quarantine")


@pytest.mark.parametrize(
    ("table", "query", "message"),
    [
        ("csv", "SELECT array(id) AS a FROM src", "column 'a' is array<int>, which csv files cannot hold"),
        ("parquet", "SELECT id, name AS ID FROM src", "the files would have column 'id' more than once"),
    ],
)
def test_rows_that_the_files_of_a_target_cannot_hold_are_errors(
    table: str, query: str, message: str, explain: Explain
) -> None:
    text = f"{SOURCE}CREATE TABLE t USING {table} OPTIONS (path 'out'); INSERT INTO t {query};"
    assert message in messages(explain(text)["errors"])[0]


def test_the_guarantee_and_the_plan_of_an_insert_are_reported(explain: Explain) -> None:
    report = explain(f"{SOURCE}CREATE TABLE p USING print; INSERT INTO p SELECT id FROM src;", with_plan=True)
    assert report["statements"][0]["guarantee"] == ""  # the command adds that of the options
    assert "== Physical Plan ==" in report["statements"][0]["plan"]


# --connect


def test_connect_reads_each_source_and_checks_each_target_without_writing(
    explain: Explain, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("SELECT 1 AS id, 'x' AS name, now() AS at, 1.5 AS price").write.csv(
        str(tmp_path / "in"), header=True
    )
    report = explain(target("a INT", "INSERT OVERWRITE t SELECT id FROM src"), connect=True)
    assert report["errors"] == []
    assert report["probes"] == [
        {"table": "src", "verb": "read", "ok": True, "rows": 1},
        {"table": "t", "verb": "write", "ok": True},
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_connect_says_that_it_cannot_check_a_sink_without_a_probe(spark: SparkSession) -> None:
    tables = "CREATE TABLE p USING print; CREATE TABLE q USING print;"
    text = f"{tables} INSERT INTO p SELECT 1; INSERT INTO q SELECT 2"
    plan = compile_script(text, file="s.sql", base_dir="/", variables={})
    plan["steps"][1]["connector"] = "rejecting"
    parts = {"rejecting": {"source": "", "sink": "tests.rejecting_sink:RejectingSink"}}
    report = analyse_script(spark, {**plan, "connectors": parts}, connect=True, with_plan=False)
    assert report["probes"] == [
        {"table": "p", "verb": "write", "ok": True},
        {
            "table": "q",
            "verb": "write",
            "ok": None,
            "message": "connector 'rejecting' has no check of a target without a write",
        },
    ]
    assert report["errors"] == []


def test_connect_reports_every_source_and_target_that_cannot_be_used(
    explain: Explain, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("SELECT 1 AS other").write.parquet(str(tmp_path / "out"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    (tmp_path / "file").touch()
    text = f"""{SOURCE}
    CREATE TABLE added USING parquet OPTIONS (path 'out'); INSERT INTO added SELECT id FROM src;
    CREATE TABLE mine USING parquet OPTIONS (path 'mine'); INSERT OVERWRITE mine SELECT id FROM src;
    CREATE TABLE below USING parquet OPTIONS (path 'file/out'); INSERT INTO below SELECT id FROM src;
    """
    report = explain(text, connect=True)
    assert [(probe["table"], probe["ok"]) for probe in report["probes"]] == [
        ("src", False),
        ("added", False),
        ("mine", False),
        ("below", False),
    ]
    assert len(report["errors"]) == 4
    assert "letter.txt" in report["probes"][2]["message"]
    assert (tmp_path / "mine" / "letter.txt").exists()


def test_connect_expects_of_existing_rows_only_what_the_script_leaves_of_them(
    explain: Explain, spark: SparkSession, tmp_path: Path
) -> None:
    spark.sql("SELECT 1 AS other").write.parquet(str(tmp_path / "out"))
    text = """CREATE TABLE t USING parquet OPTIONS (path 'out');
    INSERT OVERWRITE t SELECT 1 AS id; INSERT INTO t SELECT 2 AS id;"""
    assert explain(text, connect=True)["errors"] == []


def test_connect_finds_a_folder_without_write_permission(explain: Explain) -> None:
    with TemporaryDirectory() as made:  # pytest's folders are closed to other users
        folder = Path(made)
        folder.chmod(0o755)
        (folder / "in").mkdir()
        text = f"""{SOURCE}CREATE TABLE t USING parquet OPTIONS (path 'kept/out');
        INSERT INTO t SELECT id FROM src;"""

        def found() -> list[str]:
            return messages(explain(text, folder, connect=True)["errors"])

        kept = folder / "kept"
        kept.mkdir()
        kept.chmod(0o777)
        assert found() == []  # this also loads all imports
        find = (lambda: as_another_user(found)) if os.geteuid() == 0 else found
        assert find() == []
        kept.chmod(0o555)
        (refused,) = find()
        assert "may not write in" in refused
