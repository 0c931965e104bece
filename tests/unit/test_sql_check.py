# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""All errors of a script in one check, and its warnings."""

import pickle

import pytest

from spark_runner.sql.compiler.compile import MAX_ERRORS, check_script, compile_script
from spark_runner.sql.text.errors import SqlError


def places(text: str) -> list[tuple[int, int, str]]:
    """Line, column and the begin of the message of each error."""
    found = check_script(text, file="s.sql", base_dir="/base", variables={})
    return [(error.line, error.column, error.message.split(";")[0]) for error in found.errors]


def warnings(text: str) -> list[tuple[int, int, str]]:
    found = check_script(text, file="s.sql", base_dir="/base", variables={})
    assert found.plan is not None
    return [(error.line, error.column, error.message) for error in found.warnings]


DROP = (
    "DROP is refused: names of a script end with it, and a table of a catalog would be missing"
    " when an attempt reruns"
)
SCRIPT = """\
CREATE TABLE src USING csv OPTIONS (pth 'in', haeder true, delimiter ';;');
CREATE TABLE dst USING parquet OPTIONS (path 'out', mode 'x');
CREATE VIEW v AS SELECT * FROM src WHERE day = '${day}';
DROP TABLE v;
INSERT INTO dst SELECT * FROM v;
INSERT INTO dts SELECT * FROM src;
INSERT INTO src
"""


def test_all_errors_of_a_script_are_found_in_one_check() -> None:
    assert places(SCRIPT) == [
        (1, 37, "unknown option 'pth' of connector 'csv'"),
        (1, 47, "unknown option 'haeder' of connector 'csv'"),
        (1, 70, "option 'delimiter' of connector 'csv' cannot be '"),
        (
            2,
            58,
            "option 'mode' of connector 'parquet' cannot be 'x': Input should be 'append' or 'error'",
        ),
        (3, 49, "unknown variable 'day'"),
        (4, 1, DROP),
        (6, 13, "unknown table 'dts'"),
        (7, 16, "expected a query (SELECT, WITH, VALUES, FROM or TABLE), found the end of the statement"),
    ]


def test_the_error_of_a_compilation_shows_all_and_survives_pickling() -> None:
    with pytest.raises(SqlError) as caught:
        compile_script(SCRIPT, file="s.sql", base_dir="/base", variables={})
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - made in this line
    assert str(again) == str(caught.value)
    heads = [line for line in str(again).splitlines() if line.startswith("s.sql:")]
    assert [head.split(": ")[0] for head in heads] == [
        *("s.sql:1:37", "s.sql:1:47", "s.sql:1:70", "s.sql:2:58"),
        *("s.sql:3:49", "s.sql:4:1", "s.sql:6:13", "s.sql:7:16"),
    ]


@pytest.mark.parametrize(
    "declaration",
    [
        "CREATE TABLE t USING none",
        "CREATE TABLE t",
        "CREATE OR REPLACE TEMP VIEW t AS SELEC 1",
        "CREATE TEMPORARY TABLE `T` USING csv OPTIONS (path '${none}')",
        "CREATE VIEW t AS SELECT * FROM p",  # p can only be written
    ],
)
def test_the_uses_of_a_name_with_an_invalid_declaration_are_no_further_errors(declaration: str) -> None:
    uses = "INSERT INTO p SELECT * FROM t; INSERT INTO t SELECT 1; CREATE VIEW v AS SELECT * FROM t"
    assert len(places(f"CREATE TABLE p USING print; {declaration}; {uses}")) == 1


def test_statements_before_a_quote_that_is_never_closed_are_checked() -> None:
    assert places("DROP 1;\nSET a = 'x;\nSELECT 2") == [
        (1, 1, DROP),
        (2, 9, "this string has no closing quote"),
    ]


def test_a_check_ends_after_so_many_errors() -> None:
    assert len(places("DROP 1;" * (MAX_ERRORS + 5))) == MAX_ERRORS


def test_a_table_or_view_that_no_statement_uses_is_a_warning() -> None:
    used = "CREATE TABLE p USING print; CREATE VIEW v AS SELECT 1; INSERT INTO p SELECT * FROM v;\n"
    assert warnings(used) == []
    assert warnings(f"{used}CREATE VIEW w AS SELECT * FROM v;\nCREATE TABLE t USING print") == [
        (2, 13, "view 'w' is never used"),
        (3, 14, "table 't' is never used"),
    ]


def test_a_name_that_is_declared_again_is_used_on_its_own() -> None:
    text = "CREATE TABLE p USING print;CREATE VIEW v AS SELECT 1;\nCREATE OR REPLACE VIEW v AS SELECT 2;"
    assert warnings(f"{text}INSERT INTO p TABLE v") == [(1, 40, "view 'v' is never used")]


def test_no_name_is_unused_where_a_query_computes_names() -> None:
    text = "CREATE TABLE t USING csv OPTIONS (path 't'); CREATE TABLE p USING print;"
    assert warnings(f"{text} INSERT INTO p SELECT * FROM IDENTIFIER('t')") == []
    assert len(warnings(f"{text} INSERT INTO p SELECT 1")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t USING csv OPTIONS (path 't', mode '${p}')",
        "CREATE TABLE t USING csv OPTIONS (path 't', header ${p})",
        "CREATE TABLE t USING ${p} OPTIONS (path 't')",
        "CREATE TABLE t (a INT) USING csv OPTIONS (path 't', partition_by 'a,${p}')",
        "CREATE TABLE t WITH ('connector' = 'filesystem', 'format' = '${p}')",
        "CREATE TABLE t WITH ('connector' = '${p}')",
        "CREATE TABLE t WITH ('connector' = 'print', 'update-mode' = '${p}')",
        "CREATE TABLE t USING csv OPTIONS (path 't') ${p}",
        "CREATE ${p} t",
        "SET job.mode = 'x${p}'",
        "SET table.dml-sync = '${p}'",
        "SET table.optimizer.join.broadcast-threshold = ${p}",
    ],
)
def test_an_error_shows_a_variable_by_its_name(text: str) -> None:
    found = check_script(text, file="s.sql", base_dir="/base", variables={"p": "hunter2"})
    assert len(found.errors) == 1
    assert "hunter2" not in str(found.errors[0])
    assert "${p}" in found.errors[0].message or "partition_by" in found.errors[0].message
