# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Hostile scripts in lint: sqlglot gets no text beyond its limits, and lint takes little time."""

import cProfile
from collections.abc import Callable

import pytest

from orchestrator.sql.columns import parsing
from orchestrator.sql.columns.check import column_errors
from spark_runner.sql.compiler.compile import check_script
from tests import bounded
from tests.unit.test_sql_limits import COMPILED, SHOWN

TABLE = "CREATE TABLE t (a INT, b INT) USING csv OPTIONS (path 't');"
WORST = parsing.MAX_SCRIPT_CHARACTERS
CALLS = 1_300
"""The calls of functions that lint may make for each line of a long script; it makes 1,123."""
GROWTH = 1.05
"""The calls of lint for each line of a long script, in those for each of a script half as long."""


def joined(levels: int) -> str:
    """Views of which each has twice the columns of the one before."""
    first = "CREATE VIEW v0 AS SELECT * FROM t;"
    views = "".join(
        f"CREATE VIEW v{n} AS SELECT l.*, r.* FROM v{n - 1} l, v{n - 1} r;" for n in range(1, levels)
    )
    return f"{TABLE}{first}{views}SELECT a FROM v{levels - 1}"


SCRIPTS = {
    **{name: text for name, (text, values) in COMPILED.items() if not values},
    "open parentheses": f"{SHOWN}INSERT INTO shown SELECT {'(' * 199}1{')' * 199}",
    "parentheses within the limit": f"{TABLE}SELECT {'(' * 28}a{')' * 28} FROM t;" * 1
    + f"SELECT {'(' * 28}a{')' * 28} FROM t;" * 900,
    "queries in queries": f"{TABLE}SELECT a FROM {'(SELECT a FROM ' * 29}t{')' * 29};"
    + f"SELECT {'(SELECT ' * 29}a FROM t{')' * 29};" * 200,
    "functions in functions": f"{TABLE}" + f"SELECT {'f(x -> ' * 29}a{')' * 29} FROM t;" * 300,
    "casts in casts": f"{TABLE}" + f"SELECT {'CAST(' * 29}a{' AS INT)' * 29} FROM t;" * 300,
    "cases in cases": f"{TABLE}SELECT {'CASE WHEN a THEN ' * 190}1{' END' * 190} FROM t",
    "a long query": f"{TABLE}SELECT {'a, ' * 100_000} b FROM t",
    "the longest queries for sqlglot": TABLE + f"SELECT {'a, ' * 6_000} b FROM t;" * 20,
    "operators": f"{TABLE}" + f"SELECT {'a + ' * 399} b FROM t;" * 100,
    "signs": f"{TABLE}SELECT {'- ' * 399} b FROM t;",
    "unions": f"{TABLE}" + f"SELECT 1 {'UNION SELECT a FROM t ' * 390};" * 20,
    "joins": f"{TABLE}" + f"SELECT a FROM t {', t' * 3_000};" * 20,
    "joins with names": f"{TABLE}" + f"SELECT {'c, ' * 3_000} c FROM t {', t' * 90};" * 15,
    "views that double their columns": joined(13),
    "definitions": f"{TABLE}WITH "
    + ", ".join(f"x{n} AS (SELECT * FROM {f'x{n - 1}' if n else 't'})" for n in range(500))
    + "SELECT a FROM x499",
    "wrong names": f"{TABLE}SELECT {'c, ' * 6_000} c FROM t",
    "wrong names among many columns": "CREATE TABLE t ("
    + ",".join(f"column_{n} INT" for n in range(1_900))
    + ") USING csv OPTIONS (path 't');"
    + f"SELECT {', '.join(f'colum_{n}' for n in range(1_500))} FROM t;" * 8,
}


@pytest.mark.parametrize("weapon", SCRIPTS)
def test_a_hostile_script_is_linted_in_little_time_and_memory(weapon: str) -> None:
    check = check_script(SCRIPTS[weapon], file="s.sql", base_dir="/base", variables={})
    assert check.plan is not None, check.errors
    found = bounded.outcome(lambda: len(column_errors(check)))
    assert isinstance(found, int), found


def test_sqlglot_gets_no_text_beyond_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = list[str]()

    def recorded(_dialect: object, text: str) -> list[None]:
        texts.append(text)
        return []

    monkeypatch.setattr("orchestrator.sql.columns.parsing.Spark.parse", recorded)
    for name in ("a long query", "the longest queries for sqlglot", "casts in casts"):
        column_errors(check_script(SCRIPTS[name], file="s.sql", base_dir="/base", variables={}))
        assert sum(map(len, texts)) <= WORST + len(texts) * len(parsing.EXPRESSION_HEAD)
        assert max(map(len, texts), default=0) <= parsing.MAX_CHARACTERS + len(parsing.EXPRESSION_HEAD)
        texts.clear()


def test_the_work_of_lint_grows_as_the_lines_of_a_script() -> None:
    from benchmarks.sql import LINES, lint, long_script  # noqa: PLC0415 - lazy: loads pyspark

    half, whole = long_script(LINES // 2), long_script(LINES)
    lint(half)  # the first one loads modules
    of_a_line = _calls(lint, whole) / whole.count("\n")
    assert of_a_line < CALLS
    assert of_a_line < GROWTH * _calls(lint, half) / half.count("\n")


def _calls(work: Callable[[str], None], script: str) -> int:
    """The calls of functions, which are as many on each machine, however busy it is."""
    profile = cProfile.Profile()
    profile.runcall(work, script)
    return sum(each.callcount for each in profile.getstats())
