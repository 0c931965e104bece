# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Statements that show or check data and write nothing: queries, ASSERT, EXPLAIN; and CACHE TABLE."""

from typing import Any

import pytest

from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.restrictions import check_plan
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.source import MAX_NESTING, MAX_VIEW_DEPTH

SOURCE = "CREATE TABLE src USING csv OPTIONS (path 'in');\n"


def plan(text: str, **variables: str) -> dict[str, Any]:
    return compile_script(text, file="s.sql", base_dir="/base", variables=variables)


def refused(text: str) -> SqlError:
    with pytest.raises(SqlError) as caught:
        plan(text)
    return caught.value


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1",
        "(SELECT 1) UNION ALL ((SELECT 2))",
        "with a as (select 1) table a",
        "VALUES (1), (2)",
        "FROM range(3) SELECT id",
        "TABLE src",
    ],
)
def test_a_query_is_a_step_with_its_text(query: str) -> None:
    made = plan(f"{SOURCE}  {query};")
    offset = made["source"].rindex(query)
    step = made["steps"][-1]
    assert step == {"kind": "query", "line": 2, "column": 3, "query": [[offset, len(query)]]}


@pytest.mark.parametrize(
    ("text", "condition", "message"),
    [
        ("ASSERT true", "true", ""),
        ("assert 1 < 2, 'said'", "1 < 2", "said"),
        ("ASSERT (SELECT count(*), 1 FROM src) > 0 , 'it''s'", "(SELECT count(*), 1 FROM src) > 0 ", "it's"),
        ("ASSERT f(a, ')', [1, 2])", "f(a, ')', [1, 2])", ""),
        ("ASSERT a::STRUCT<b INT, c INT> = d, 'said'", "a::STRUCT<b INT, c INT> = d", "said"),
    ],
)
def test_an_assert_is_a_condition_with_a_message(text: str, condition: str, message: str) -> None:
    made = plan(f"{SOURCE}{text}")
    step = made["steps"][-1]
    ((start, length),) = step["condition"]
    assert (step["kind"], step["line"], step["column"], step["message"]) == ("assert", 2, 1, message)
    assert made["source"][start : start + length] == condition


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("ASSERT", 7, "expected a condition, found the end"),
        ("ASSERT , 'said'", 8, "expected a condition, found ','"),
        ("ASSERT a > 0, message", 15, "expected a message in quotes behind the condition"),
        ("ASSERT a > 0,", 14, "expected a message in quotes"),
        ("ASSERT a > 0, 'said' 'more'", 22, "the message of ASSERT is one string"),
    ],
)
def test_a_mistake_in_an_assert_is_shown_at_its_place(text: str, column: int, message: str) -> None:
    error = refused(text)
    assert message in error.message
    assert (error.line, error.column) == (1, column)


# {} is a query in each statement that shows or checks data.
STATEMENTS = [
    "{}",
    "ASSERT EXISTS ({})",
    "EXPLAIN {}",
    "CREATE TABLE o USING print; EXPLAIN EXTENDED INSERT INTO o {}",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_it_marks_the_tables_that_it_reads(statement: str) -> None:
    made = check_script(
        f"{SOURCE}CREATE VIEW v AS TABLE src;\n{statement.format('SELECT 1 FROM v')}",
        file="s.sql",
        base_dir="/base",
        variables={},
    )
    assert made.plan is not None
    assert made.plan["steps"][0]["read"] is True
    assert made.warnings == ()


@pytest.mark.parametrize("statement", STATEMENTS)
def test_it_is_enough_for_a_script(statement: str) -> None:
    assert [step["kind"] for step in plan(statement.format("SELECT 1"))["steps"]] != []


@pytest.mark.parametrize("statement", STATEMENTS)
def test_it_cannot_read_a_table_that_can_only_be_written(statement: str) -> None:
    error = refused(f"CREATE TABLE p USING print;\n{statement.format('SELECT 1 FROM p')}")
    assert "connector 'print' of table 'p' can only be written" in error.message
    assert error.source_line[error.column - 1 :].startswith("p")


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("call", ["reflect('a', 'b')", "IDENTIFIER('re' || 'flect')('a', 'b')"])
def test_a_script_whose_statement_reaches_java_gets_a_jvm_of_its_own(statement: str, call: str) -> None:
    text = statement.format(f"SELECT {call}")
    made = plan(text)
    assert made["needs_own_jvm"] is True
    with pytest.raises(SqlError, match="may not run in a JVM that other jobs use"):
        check_plan({**made, "needs_own_jvm": False}, shares_jvm=True)
    check_plan(plan(statement.format("SELECT 1")), shares_jvm=True)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_files_that_it_names_are_known_and_may_be_denied(statement: str) -> None:
    made = plan(statement.format("SELECT 1 FROM csv.`x.csv`"))
    assert (made["formats"], made["names_files"]) == (["csv"], True)
    with pytest.raises(SqlError, match="files of the format 'csv' are refused by the policy"):
        check_plan({**made, "formats": [], "denied_formats": ["csv"]}, shares_jvm=False)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_limits_of_a_query_hold(statement: str) -> None:
    deep = f"SELECT {'(' * (MAX_NESTING + 1)}1{')' * (MAX_NESTING + 1)}"
    assert "which is the limit" in refused(statement.format(deep)).message
    views = "".join(f"CREATE VIEW v{n + 1} AS TABLE v{n};" for n in range(MAX_VIEW_DEPTH))
    text = f"{SOURCE}CREATE VIEW v0 AS TABLE src;{views}{statement.format(f'TABLE v{MAX_VIEW_DEPTH}')}"
    assert f"more than {MAX_VIEW_DEPTH} deep" in refused(text).message


def test_explain_marks_its_target_as_explained_only() -> None:
    made = plan(f"{SOURCE}EXPLAIN FORMATTED INSERT INTO src SELECT 1")
    table, step = made["steps"]
    assert (table["read"], table["written"], table["explained"]) == (False, False, True)
    assert (step["kind"], step["mode"], step["target"]) == ("explain", "formatted", "src")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EXPLAIN", "expected a query or an INSERT"),
        ("EXPLAIN DROP TABLE t", "expected a query or an INSERT, found 'DROP'"),
        ("EXPLAIN EXECUTE STATEMENT SET BEGIN INSERT INTO src SELECT 1; END", "EXPLAIN before each INSERT"),
        ("EXPLAIN INSERT INTO q SELECT 1", "unknown table 'q'"),
        ("EXPLAIN INSERT INTO src TABLE src", "refused: this INSERT reads 'src'"),
        ("CACHE t", "expected TABLE"),
        ("CACHE TABLE scr", "did you mean 'src'?"),
        ("CACHE TABLE q", "unknown table or view 'q'; declare it before"),
        ("CACHE TABLE v AS SELECT 1", "unexpected 'AS'; a script caches its tables and views"),
        ("UNCACHE TABLE q", "unknown table or view 'q'"),
        ("CREATE TABLE p USING print; CACHE TABLE p", "can only be written"),
    ],
)
def test_a_mistake_in_explain_or_cache_is_one_error(text: str, message: str) -> None:
    error = refused(f"{SOURCE}{text}")
    assert message in error.message
    assert error.others == ()


def test_cache_and_uncache_are_steps_and_no_uses() -> None:
    text = f"{SOURCE}CACHE LAZY TABLE src; CACHE TABLE src; UNCACHE TABLE src; UNCACHE TABLE IF EXISTS q;"
    assert "nothing to do" in refused(text).message
    found = check_script(f"{text} SELECT 1", file="s.sql", base_dir="/base", variables={})
    assert found.plan is not None
    steps = found.plan["steps"]
    assert steps[0]["read"] is True
    assert [(step["kind"], step.get("lazy")) for step in steps[1:-1]] == [
        ("cache", True),
        ("cache", False),
        ("uncache", None),
    ]
    assert [warning.message for warning in found.warnings] == ["table 'src' is never used"]
