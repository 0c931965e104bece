# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""A plan in ZooKeeper may be forged: the driver checks it again."""

from typing import Any

import pytest

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.grammar.references import FILE_FORMATS
from spark_runner.sql.restrictions import check_plan, session_settings
from spark_runner.sql.text.errors import SqlError

TABLE = "CREATE TABLE t WITH ('connector'='print'); "


def plan(script: str, **variables: str) -> dict[str, Any]:
    made = compile_script(TABLE + script, file="a.sql", base_dir="/", variables=variables)
    return {**made, "needs_own_jvm": False, "formats": []}  # as a forged one claims


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t SELECT reflect('java.lang.System', 'exit', 0)",
        "CREATE VIEW v AS SELECT TRANSFORM(id) USING 'env' FROM range(1); INSERT INTO t SELECT * FROM v",
        "INSERT INTO t SELECT ${call}('java.lang.System', 'exit', 0)",
        "SET spark.sql.variable.substitute = true; INSERT INTO t SELECT 1",
        "CREATE TABLE c (a INT, b STRING GENERATED ALWAYS AS (reflect('a', 'b'))) WITH ('connector'='print')",
        "CREATE TABLE c (a INT, b AS reflect('a', 'b')) WITH ('connector'='print')",
        "CREATE TABLE c(a INT,CONSTRAINT e EXPECT (reflect('a','b')) ON VIOLATION FAIL) USING print",
        "RESET spark.sql.variable.substitute",
        "CREATE VIEW v AS SELECT 1; CACHE TABLE v",
        "CREATE VIEW v AS SELECT 1; BEGIN STATEMENT SET; INSERT INTO t TABLE v; INSERT INTO t TABLE v; END",
        "RESET fs.file.impl",
        "SET spark.sql.ansi.doubleQuotedIdentifiers = true",
    ],
)
def test_a_shared_jvm_runs_no_statement_that_needs_one_of_its_own(statement: str) -> None:
    made = plan(f"{statement}; INSERT INTO t SELECT 1", call="java_method")
    check_plan(made, shares_jvm=False)
    with pytest.raises(
        SqlError, match=r"a.sql:1:\d+: this statement may not run in a JVM that other jobs use"
    ):
        check_plan(made, shares_jvm=True)


@pytest.mark.parametrize("name", ['"spark_catalog"."n"."t"', 'spark_catalog."n".t'])
def test_a_catalog_in_double_quotes_in_a_shared_jvm_says_what_makes_it_one(name: str) -> None:
    text = "CREATE VIEW v AS SELECT * FROM {}; INSERT INTO t SELECT * FROM v"
    with pytest.raises(SqlError, match=r"'spark_catalog\.n\.t' a table of a catalog where the def") as caught:
        check_plan(plan(text.format(name)), shares_jvm=True)
    assert "write the name in backticks, or SET that setting in the script" in caught.value.message
    for mended in (
        "`spark_catalog`.`n`.`t`; SELECT 1",
        f"{name}; SET spark.sql.ansi.doubleQuotedIdentifiers = true",
    ):
        made = compile_script(TABLE + text.format(mended), file="a.sql", base_dir="/b", variables={})
        assert made["needs_own_jvm"]


def test_a_query_reads_no_files_of_a_format_that_the_policy_denies() -> None:
    made = plan("CREATE VIEW v AS SELECT * FROM Csv . `/x`; INSERT INTO t SELECT * FROM v")
    check_plan({**made, "denied_formats": ["json"]}, shares_jvm=True)
    with pytest.raises(SqlError, match="files of the format 'csv' are refused by the policy"):
        check_plan({**made, "denied_formats": ["csv"]}, shares_jvm=False)


@pytest.mark.parametrize(
    "command",
    [
        "ADD JAR '/x.jar'",
        "CREATE TEMPORARY FUNCTION f AS 'org.example.F' USING JAR '/x.jar'",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "BEGIN SELECT 1; END",
        "SET spark.sql.variable.substitute = true",
        "CLEAR CACHE",
        "INSERT OVERWRITE DIRECTORY '/x' USING csv SELECT 1",
        "WITH c AS (SELECT 1) INSERT OVERWRITE DIRECTORY '/x' USING csv SELECT 1",
    ],
)
def test_a_plan_cannot_bring_a_command_in_place_of_a_query(command: str) -> None:
    made = plan(f"/*{command}*/ INSERT INTO t SELECT 1")
    made["steps"][-1]["query"] = [[made["source"].index(command), len(command)]]
    check_plan(made, shares_jvm=False)
    with pytest.raises(SqlError, match=r"expected a query|cannot hold an INSERT"):
        check_plan(made, shares_jvm=True)
    with pytest.raises(SqlError, match=r"expected a query|cannot hold an INSERT"):
        check_plan({**made, "denied_formats": ["csv"]}, shares_jvm=False)


HIDDEN = [
    "`c\u017fv`.`/x`",
    "`x\u212a`.`/x`, `b\u0130naryFile`.`/x`",
    "`com.databricks.spark.csv`.`/x`",
    "`org.apache.spark.sql.execution.datasources.csv.CSVFileFormat`.`/x`",
    "IDENTIFIER('csv.`/x`')",
    '"csv"."/x"',
    'csv."/x"',
    "csv.x",
    "image.`/x`",
]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_query_that_names_files_of_an_allowed_format_cannot_hide_others(hidden: str) -> None:
    denied = [name for name in FILE_FORMATS if name != "json"]
    made = plan(f"INSERT INTO t SELECT * FROM json.`/a`, {hidden}")
    with pytest.raises(SqlError, match=r"files of the format '.+' are refused by the policy"):
        check_plan({**made, "denied_formats": denied}, shares_jvm=False)


@pytest.mark.parametrize("query", ["SELECT csv.id FROM range(1) AS csv", "SELECT * FROM csv.x", "SELECT 1"])
def test_spark_itself_reads_no_files_by_name_where_connectors_are_listed(query: str) -> None:
    made = {**plan(f"INSERT INTO t {query}"), "denied_formats": ["csv"]}
    check_plan(made, shares_jvm=False)
    assert session_settings(made)["spark.sql.runSQLOnFiles"] == "false"
    assert "spark.sql.runSQLOnFiles" not in session_settings({**made, "denied_formats": []})


@pytest.mark.parametrize("setting", ["SET spark.sql.runSQLOnFiles = true", "RESET `spark.sql.runSQLOnFiles`"])
def test_no_statement_switches_files_by_name_on_again(setting: str) -> None:
    made = plan(f"{setting}; INSERT INTO t SELECT 1")
    check_plan({**made, "denied_formats": []}, shares_jvm=False)
    with pytest.raises(SqlError, match=r"a.sql:1:44: this setting is refused where the policy"):
        check_plan({**made, "denied_formats": ["csv"]}, shares_jvm=False)


@pytest.mark.parametrize(
    "script",
    [
        "SET job.error.limit.rows = 1; CREATE TABLE t (n INT) USING print; INSERT INTO t VALUES (1);",
        "CREATE TABLE t (n INT, CHECK_HERE) USING print; INSERT INTO t VALUES (1);",
    ],
)
def test_a_plan_that_keeps_rows_while_they_are_counted_needs_its_own_jvm(script: str) -> None:
    script = script.replace("CHECK_HERE", "CONSTRAINT c EXPECT (n > 1) ON VIOLATION DROP ROW")
    made = compile_script(script, file="a.sql", base_dir="/b", variables={})
    assert made["needs_own_jvm"]
    check_plan(made, shares_jvm=False)
    with pytest.raises(SqlError, match="may not run in a JVM that other jobs use"):
        check_plan({**made, "needs_own_jvm": False}, shares_jvm=True)
