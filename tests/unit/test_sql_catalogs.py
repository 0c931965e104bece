# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Statements on tables of Spark catalogs, without Spark: what tools show, and who may run them."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.app import run_app
from orchestrator.sql.columns.check import column_errors
from orchestrator.sql.flow import flows
from orchestrator.sql.format.script import format_script
from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.grammar.references import catalog_names
from spark_runner.sql.restrictions import check_plan
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.full_name import full_name_of, may_be_same
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import meaningful, tokenize

SRC = "CREATE TABLE src (id INT, name STRING) USING csv OPTIONS (path 'src');\n"
MERGE = "MERGE INTO cat.db.t t USING src s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"


def compiled(text: str) -> dict[str, Any]:
    plan = compile_script(text, file="s.sql", base_dir="/base", variables={})
    return dict(json.loads(json.dumps(plan)))


# Names


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT * FROM a.b, c . d JOIN `e.f`.g", ["a.b", "c.d", "`e.f`.g"]),
        ("SELECT * FROM (a.b), LATERAL (SELECT * FROM c.d.e) x", ["a.b", "c.d.e"]),
        ("FROM a.b |> WHERE b.c = 1", ["a.b"]),
        ("TABLE a.b", ["a.b"]),
        ("WITH a AS (SELECT * FROM x.y) SELECT a.z FROM a", ["x.y"]),
        ("WITH trim (SELECT * FROM x.y) SELECT * FROM trim", ["x.y"]),
        (
            "SELECT extract(YEAR FROM t.a), trim(LEADING FROM t.b), overlay(t.a PLACING 'x' FROM t.b) FROM t",
            [],
        ),
        ("SELECT trim((SELECT max(a) FROM x.y)) FROM t", ["x.y"]),
        ("SELECT a IS DISTINCT FROM t.b, t.c FROM t, t.d", ["t.d"]),
        ("SELECT * FROM csv.`/x`, parquet.`y`, a.f(1), delta.`/z`", ["delta.`/z`"]),
        ("SELECT t.a, u.b FROM t JOIN u ON t.a = u.a WHERE t.c IN (1, t.d) ORDER BY t.a, t.b", []),
    ],
)
def test_names_with_dots_in_the_position_of_a_table_are_tables_of_catalogs(
    query: str, names: list[str]
) -> None:
    tokens = [token for token in tokenize(ScriptSource("", query)) if meaningful(token)]
    assert list(map(str, catalog_names(tokens).values())) == names


def test_a_short_name_may_be_that_of_a_table_in_any_namespace() -> None:
    assert may_be_same(("cat", "db", "t"), ("db", "t"))
    assert not may_be_same(("cat", "db", "t"), ("other", "db", "t"))
    assert not may_be_same(("db", "t"), ("db", "u"))


def test_a_text_is_a_name_or_not() -> None:
    found = full_name_of("a.`b c`.d")
    assert found is not None
    assert (found.parts, str(found)) == (("a", "b c", "d"), "a.`b c`.d")
    assert [full_name_of(text) for text in ("", "a.", "a b", "a.b; c", "`a", "1.2")] == [None] * 6


# Who may run them


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM db.t",
        "CREATE VIEW v AS SELECT * FROM db.t; SELECT * FROM v",
        "ASSERT (SELECT count(*) FROM db.t) = 0",
        "INSERT INTO db.t SELECT 1",
        MERGE,
        "USE CATALOG cat; SELECT 1",
        "SHOW CATALOGS",
        "CREATE NAMESPACE IF NOT EXISTS cat.db",
    ],
)
def test_catalogs_need_a_jvm_of_their_own_and_a_policy_that_allows_them(statement: str) -> None:
    plan = compiled(f"{SRC}{statement}")
    assert (plan["names_catalogs"], plan["needs_own_jvm"]) == (True, True)
    check_plan(plan, shares_jvm=False)
    with pytest.raises(SqlError, match="may not run in a JVM that other jobs use"):
        check_plan(plan, shares_jvm=True)
    with pytest.raises(SqlError, match="does not list the connector 'catalog'"):
        check_plan({**plan, "denied_catalogs": True}, shares_jvm=False)


def test_a_policy_denies_a_catalog_whose_name_is_in_double_quotes() -> None:
    plan = compiled(
        'SET spark.sql.ansi.doubleQuotedIdentifiers = true; SELECT * FROM "spark_catalog"."n"."t"'
    )
    assert plan["needs_own_jvm"]
    with pytest.raises(SqlError, match="does not list the connector 'catalog'") as caught:
        check_plan({**plan, "denied_catalogs": True}, shares_jvm=False)
    assert caught.value.column == 66


def test_a_forged_plan_cannot_bring_another_statement_or_a_denied_format() -> None:
    command = "ADD JAR '/x.jar'"
    plan = compiled(f"/* {command} */ INSERT INTO cat.db.t SELECT 1")
    check_plan({**plan, "denied_formats": ["csv"]}, shares_jvm=False)
    plan["steps"][-1]["statement"] = [[plan["source"].index(command), len(command)]]
    with pytest.raises(SqlError, match="'ADD' is not supported here"):
        check_plan({**plan, "denied_formats": ["csv"]}, shares_jvm=False)

    plan = compiled("CREATE TABLE IF NOT EXISTS cat.db.t (a INT) USING CSV LOCATION '/x'")
    assert plan["formats"] == ["csv"]
    check_plan({**plan, "denied_formats": ["json"]}, shares_jvm=False)
    with pytest.raises(SqlError, match="files of the format 'csv' are refused"):
        check_plan({**plan, "denied_formats": ["csv"]}, shares_jvm=False)


# Tools


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("INSERT INTO session.src SELECT 1, 'a'", "session.src"),
        ("INSERT OVERWRITE System.`session`.src SELECT 1, 'a'", "System.session.src"),
        ("SELECT * FROM cat.db.t JOIN session.src USING (id)", "session.src"),
        ("MERGE INTO cat.db.t t USING session.src s ON t.id = s.id WHEN MATCHED THEN DELETE", "session.src"),
        ("DELETE FROM cat.db.t WHERE id IN (SELECT id FROM session.src)", "session.src"),
    ],
)
def test_a_table_of_the_script_has_one_name(statement: str, name: str) -> None:
    with pytest.raises(SqlError, match=f"'{name}' means 'src' of the script") as caught:
        compiled(f"{SRC}{statement}")
    assert (caught.value.line, caught.value.column) == (2, statement.replace("`", "").index(name) + 1)
    compiled(f"{SRC}SELECT * FROM spark_catalog.session.src, src")


@pytest.mark.parametrize("name", [".".join("abcdefghi"), f"a.{'b' * 512}"])
def test_the_name_of_a_table_that_a_query_reads_is_bounded(name: str) -> None:
    with pytest.raises(SqlError, match="has up to 8 parts and 512 characters") as caught:
        compiled(f"SELECT * FROM {name}")
    assert caught.value.column == 15


def test_lint_checks_the_query_of_an_insert_and_takes_tables_of_catalogs_as_they_are() -> None:
    right = f"{SRC}INSERT INTO cat.db.t SELECT s.id, t.any FROM src s JOIN cat.db.t2 t ON s.id = t.other"
    found = check_script(right, file="s.sql", base_dir="/", variables={})
    assert (found.errors, found.warnings, column_errors(found)) == ((), (), [])
    found = check_script(
        f"{SRC}INSERT INTO cat.db.t SELECT nam FROM src", file="s", base_dir="/", variables={}
    )
    assert [each.message for each in column_errors(found)] == ["unknown column 'nam'; did you mean 'name'?"]


def test_the_flow_has_full_names() -> None:
    text = f"""{SRC}CREATE TABLE IF NOT EXISTS cat.db.t (id INT);
        INSERT INTO cat.db.t SELECT id, upper(name) AS name FROM src JOIN cat.db.u USING (id);
        {MERGE}; USE cat.db; SHOW TABLES"""
    found = flows(check_script(text, file="s.sql", base_dir="/", variables={}))
    shown = [(each.statement, each.reads, each.writes, each.declares, each.connector) for each in found[1:]]
    assert shown == [
        ("CREATE TABLE", (), "", "cat.db.t", "catalog"),
        ("INSERT INTO", ("src", "cat.db.u"), "cat.db.t", "", "catalog"),
        ("MERGE INTO", ("src",), "cat.db.t", "", "catalog"),
        ("USE cat.db", (), "", "", ""),
        ("SHOW", (), "", "", ""),
    ]
    columns = found[2].columns
    assert columns is not None
    assert [(each.column, each.origins) for each in columns] == [
        ("id", ("src.id",)),
        ("name", ("src.name",)),
    ]


def test_a_picture_of_the_flow_can_be_drawn(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text(f"{SRC}INSERT INTO cat.db.t SELECT * FROM src JOIN cat.db.u USING (id)")
    assert run_app(["sql", "plan", str(tmp_path / "a.sql"), "--svg", str(tmp_path / "a.svg")]) == 0
    drawn = (tmp_path / "a.svg").read_text()
    assert "cat.db.t" in drawn
    assert "cat.db.u" in drawn


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("insert into Cat.Select.T by name select 1", "INSERT INTO Cat.Select.T BY NAME SELECT 1;\n"),
        ("insert overwrite table a . b values (1)", "INSERT OVERWRITE TABLE a . b VALUES (1);\n"),
        (
            "create table if not exists a.Using (b int) using csv",
            "CREATE TABLE IF NOT EXISTS a.Using (b int) USING csv;\n",
        ),
        ("create or replace table a.b (c int)", "CREATE OR REPLACE TABLE a.b (c int);\n"),
        ("use a.b", "USE a.b;\n"),
    ],
)
def test_canonical_form_keeps_the_parts_of_names(text: str, expected: str) -> None:
    assert format_script(ScriptSource("s.sql", text)) == expected


def test_a_table_of_hive_may_name_its_format_and_is_created_without_rows() -> None:
    head = "CREATE TABLE IF NOT EXISTS cat.db.stored"
    assert compiled(f"{head} (a INT) PARTITIONED BY (b INT) STORED AS ORC")["steps"]
    for rows in ("(a INT) STORED AS ORC AS SELECT 1", "AS TABLE src", "(a INT) AS TABLE src"):
        with pytest.raises(SqlError, match="write its rows by an INSERT"):
            compiled(f"{SRC}{head} {rows}")
