# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Options of a table for one use: what the compiler makes of them, and what it refuses."""

import json
from typing import Any

import pytest

from spark_runner.sql.compiler.compile import check_script, compile_script
from spark_runner.sql.compiler.own_options import MAX_USES
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource
from tests import bounded

TABLES = (
    "CREATE TABLE t (a INT, b STRING) USING csv OPTIONS (path 'in', delimiter ';');"
    "CREATE TABLE o (a INT) USING csv OPTIONS (path 'out'); CREATE VIEW v AS SELECT 1 AS a;"
    "CREATE TABLE p USING print;"
    "CREATE TABLE q (a INT) USING jdbc OPTIONS (url 'jdbc:postgresql://h/d', query 'SELECT 1 AS a');\n"
)


def compiled(text: str) -> dict[str, Any]:
    plan = compile_script(TABLES + text, file="s.sql", base_dir="/base", variables={})
    made: dict[str, Any] = json.loads(json.dumps(plan))
    return made


def query(plan: dict[str, Any], step: dict[str, Any]) -> Passage:
    return Passage.from_json(ScriptSource(plan["file"], plan["source"]), step["query"], plan["values"])


OWN = "`t (options 1)`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM t WITH ('header'='false')", f"SELECT * FROM {OWN} AS `t`"),
        ("SELECT * FROM t WITH (header = false) x", f"SELECT * FROM {OWN} x"),
        ("SELECT * FROM t WITH (`header` false) AS x", f"SELECT * FROM {OWN} AS x"),
        ("SELECT * FROM t WITH ('header'='no') WHERE a > 1", f"SELECT * FROM {OWN} AS `t` WHERE a > 1"),
        ("SELECT * FROM t /*+ OPTIONS('header'='no') */ `x`", f"SELECT * FROM {OWN} `x`"),
        (
            "SELECT * FROM v JOIN T WITH ('header'='no') USING (a)",
            f"SELECT * FROM v JOIN {OWN} AS `t` USING (a)",
        ),
        ("SELECT (SELECT max(a) FROM t WITH ('header'='no'))", f"SELECT (SELECT max(a) FROM {OWN} AS `t`)"),
        ("TABLE t WITH ('header'='no')", f"TABLE {OWN}"),
        ("SELECT * FROM c.d.t WITH ('k'='v')", "SELECT * FROM c.d.t WITH ('k'='v')"),
        ("SELECT /*+ REPARTITION(2) */ a FROM t", "SELECT /*+ REPARTITION(2) */ a FROM t"),
    ],
)
def test_a_query_reads_a_table_of_its_own(text: str, expected: str) -> None:
    plan = compiled(text)
    assert query(plan, plan["steps"][-1]).text == expected


def test_the_table_of_a_use_has_all_options_of_its_declaration_but_those_given() -> None:
    plan = compiled("SELECT * FROM t WITH ('csv.null-literal'='-')")
    own = next(step for step in plan["steps"] if step.get("name") == "t (options 1)")
    declared = plan["steps"][0]
    assert own["options"] == declared["options"] | {"null_value": "-"}
    assert own["columns"] == declared["columns"]
    assert own["read"]
    assert not declared["read"]


def test_an_insert_has_options_of_its_own() -> None:
    *_, insert = compiled("INSERT INTO o WITH ('compression'='gzip') BY NAME SELECT 1 AS a")["steps"]
    assert (insert["target"], insert["by_name"]) == ("o", True)
    assert insert["options"] | {"compression": "none"} == compiled("SELECT 1")["steps"][1]["options"]
    *_, insert = compiled("INSERT INTO o /*+ OPTIONS('mode'='error') */ SELECT 1")["steps"]
    assert insert["options"]["mode"] == "error"


def test_a_with_clause_of_a_query_is_no_option() -> None:
    plan = compiled("INSERT INTO o WITH x AS (SELECT 1) SELECT * FROM x")
    assert query(plan, plan["steps"][-1]).text == "WITH x AS (SELECT 1) SELECT * FROM x"


def test_a_position_behind_options_is_that_in_the_script() -> None:
    text = "SELECT * FROM t WITH ('header'='no') WHERE oops"
    plan = compiled(text)
    passage = query(plan, plan["steps"][-1])
    assert passage.position(passage.text.index("oops")) == (2, text.index("oops") + 1)
    assert passage.position(passage.text.index("t (options")) == (2, text.index("t WITH") + 1)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        (
            "SELECT * FROM t WITH ('heder'='false')",
            23,
            "unknown option 'heder' of connector 'csv'; did you mean",
        ),
        ("SELECT * FROM t WITH ('header'='perhaps')", 32, "cannot be 'perhaps'"),
        ("SELECT * FROM t WITH ('path'='x')", 23, "option 'path' decides what table 't' is"),
        ("SELECT * FROM t WITH ('connector.path'='x')", 23, "decides what table 't' is"),
        ("SELECT * FROM t WITH ('connector'='json')", 23, "decides what table 't' is"),
        ("INSERT INTO o WITH ('Path'='x') SELECT 1", 21, "decides what table 'o' is"),
        ("SELECT * FROM q WITH ('Read.Query'='SELECT 2 AS a')", 23, "decides what table 'q' is"),
        ("SELECT * FROM q WITH ('URL'='jdbc:postgresql://other/d')", 23, "decides what table 'q' is"),
        (
            "INSERT INTO o WITH ('partition_by'='b') SELECT 1",
            36,
            "partition_by names 'b', which is not a column",
        ),
        ("EXPLAIN INSERT INTO o WITH ('k'='b') SELECT 1", 29, "unknown option 'k'"),
        ("SELECT * FROM t WITH ('compression'='gzip')", 23, "'compression' has no effect on a query"),
        (
            "SELECT * FROM v WITH ('header'='no')",
            15,
            "'v' is a view; options belong to the tables that it reads",
        ),
        ("SELECT * FROM w WITH ('header'='no')", 15, "unknown table 'w'; options need a table"),
        ("SELECT * FROM tt WITH ('header'='no')", 15, "unknown table 'tt'; did you mean 't'?"),
        ("SELECT /*+ OPTIONS('k'='v') */ * FROM t", 8, "options belong behind the name of a table"),
        ("SELECT * FROM c.t /*+ OPTIONS('k'='v') */", 19, "are written as WITH (...)"),
        (
            "SELECT * FROM t WITH ('header'='no') TABLESAMPLE (5 ROWS)",
            38,
            "TABLESAMPLE cannot follow options",
        ),
        ("SELECT * FROM t WITH ('header'='no'", 22, "this '(' is never closed"),
        ("SELECT * FROM p WITH ('limit'='3')", 15, "can only be written"),
        ("INSERT INTO t SELECT * FROM t WITH ('header'='no')", 13, "refused: this INSERT reads 't' from"),
    ],
)
def test_what_cannot_work_is_an_error_at_its_place(text: str, column: int, message: str) -> None:
    error = check_script(TABLES + text, file="s.sql", base_dir="/base", variables={}).errors[0]
    assert (error.line, error.column, message in error.message) == (2, column, True), error


def test_a_table_that_is_only_read_with_options_counts_as_used() -> None:
    text = TABLES + "SELECT * FROM t WITH ('header'='no')"
    found = check_script(text, file="s.sql", base_dir="/base", variables={})
    assert [warning.message for warning in found.warnings if "'t'" in warning.message] == []


def test_many_uses_are_refused_within_little_time_and_memory() -> None:
    many = TABLES + "SELECT 1 FROM t WITH ('header'='no')" + ", t WITH ('header'='no')" * 15_000

    def work() -> object:
        return check_script(many, file="s.sql", base_dir="/base", variables={}).errors[0]

    error = bounded.outcome(work)
    assert isinstance(error, SqlError)
    assert f"{MAX_USES} times, which is the limit" in error.message
