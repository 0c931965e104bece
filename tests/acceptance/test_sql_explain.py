"""`orchestrator sql explain`, with its own Spark."""

import json

import pytest

from tests.acceptance.support import Shell, assert_no_traceback, assert_nothing_is_left

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

SCRIPT = """\
CREATE TABLE orders (id INT, amount DECIMAL(10, 2)) USING csv OPTIONS (path 'orders.csv');
CREATE TABLE totals (n INT) USING csv OPTIONS (path 'totals');
INSERT OVERWRITE totals SELECT {column} FROM orders;
"""


def test_columns_guarantee_probes_and_warnings_are_shown(shell: Shell, process_mark: str) -> None:
    shell.write("s.sql", SCRIPT.format(column="sum(amount) AS n"))
    shell.write("orders.csv", "id,amount\n1,2.50\n")
    shown = shell.type_anew("sql", "explain", "s.sql", "--connect")
    assert_nothing_is_left(process_mark)
    assert shown.code == 0, shown.stderr
    assert shown.stderr == "starting Spark on this machine ...\n1 file: 0 errors, 1 warning\n"
    lines = [line.rstrip() for line in shown.stdout.splitlines()]
    assert lines[:2] == [
        "s.sql:3: INSERT OVERWRITE totals (csv) -> totals",
        "  exactly once: the new rows replace the old ones as a whole, or nothing changes",
    ]
    assert lines[4].split() == ["n", "DECIMAL(20,2)", "n", "INT"]
    assert lines[6:8] == ["read orders: ok", "write totals: ok"]
    assert lines[8].startswith("s.sql:3:32: warning: table 'totals': column 'n', DECIMAL(20,2) as INT: ")
    assert sorted(path.name for path in shell.directory.iterdir()) == ["orders.csv", "s.sql"]


def test_the_guarantee_of_a_connector_that_writes_no_files_is_that_of_its_options(
    shell: Shell, process_mark: str
) -> None:
    shell.write(
        "s.sql", "CREATE TABLE p USING print; INSERT INTO p SELECT 1 AS a; EXPLAIN INSERT INTO p SELECT 2"
    )
    document = shell.type_anew("sql", "explain", "s.sql", "-o", "json").json()
    assert_nothing_is_left(process_mark)
    first, second = document["statements"]
    assert first["guarantee"] == "at least once"
    assert second["columns"] == [{"name": "2", "type": "INT", "into": None}]


def test_errors_of_lint_and_of_spark_are_findings_and_exit_1(shell: Shell, process_mark: str) -> None:
    shell.write("orders.csv", "id,amount\n1,2.50\n")
    shell.write("s.sql", SCRIPT.format(column="nope"))
    by_spark = shell.type_anew("sql", "explain", "s.sql", "-o", "json")
    assert_nothing_is_left(process_mark)
    assert by_spark.code == 1
    (finding,) = json.loads(by_spark.stdout)["findings"]
    assert (finding["file"], finding["line"], finding["column"]) == ("s.sql", 3, 32)
    assert finding["severity"] == "error"
    shell.write("t.sql", "SELEC 1")
    by_lint = shell.type("sql", "explain", "t.sql", "-o", "json")
    assert by_lint.code == 1
    document = json.loads(by_lint.stdout)
    assert document["statements"] == []
    assert document["findings"][0]["line"] == 1
    assert_no_traceback(by_spark.stderr + by_lint.stderr)
