"""References in scripts: where they may be, their form in a plan, and what has no meaning as one."""

import pytest

from spark_runner.sql.compiler.compile import Check, check_script
from spark_runner.sql.compiler.connections import Connection, ConnectionUnknown
from tests import bounded

USE = "; CREATE TABLE p USING print; INSERT INTO p SELECT * FROM t"


def check(options: str, **variables: str) -> Check:
    return compile_text(f"CREATE TABLE t (a INT) USING csv OPTIONS ({options}){USE}", **variables)


def compile_text(text: str, **variables: str) -> Check:
    return check_script(text, file="s.sql", base_dir="/base", variables=variables, connections=find)


def find(name: str) -> Connection:
    if name == "exports":
        return Connection("exports", "csv", {"null_value": "${secret:exports/null}", "delimiter": ";"})
    message = f"no connection has the name '{name}'"
    raise ConnectionUnknown(message)


@pytest.mark.parametrize(
    ("value", "pieces"),
    [
        ("'${env:X}'", [{"kind": "env", "name": "X"}]),
        ('"a${secret:s/k.pem}b"', ["a", {"kind": "secret", "name": "s/k.pem"}, "b"]),
        (r"'\\${env:X}''\n'", ["\\", {"kind": "env", "name": "X"}, "'\n"]),
        ("r'\\${env:X}'", ["\\", {"kind": "env", "name": "X"}]),
        ("'${v}${env:X}'", ["${env:Y}\\'", {"kind": "env", "name": "X"}]),
    ],
)
def test_a_plan_has_the_pieces_of_a_value(value: str, pieces: list[object]) -> None:
    found = check(f"path 'x', null_value {value}", v="${env:Y}\\'")
    assert found.errors == ()
    assert found.plan is not None
    assert found.plan["steps"][0]["references"] == {"null_value": pieces}
    assert found.plan["needs_own_jvm"]
    assert found.plan["version"] == 3


@pytest.mark.parametrize(
    "table",
    [
        "WITH ('connector'='csv', 'path'='x', 'null-literal'='${env:X}')",
        "WITH ('connector'='csv', 'path'='x', 'csv.null-literal'='${env:X}')",
        "WITH ('connector'='filesystem', 'format'='csv', 'path'='x', 'csv.null-literal'='${env:X}')",
        "WITH ('connector.type'='csv', 'connector.path'='x', 'format.null-literal'='${env:X}')",
        "USING csv OPTIONS (path 'x', nullValue '${env:X}')",
    ],
)
def test_an_option_with_another_name_may_hold_a_reference(table: str) -> None:
    found = compile_text(f"CREATE TABLE t (a INT) {table}{USE}")
    assert found.errors == ()
    assert found.plan is not None
    assert found.plan["steps"][0]["references"] == {"null_value": [{"kind": "env", "name": "X"}]}


@pytest.mark.parametrize("value", [r"'\${env:X}'", "'$${v}'", "'${v}'"])
def test_text_that_only_looks_like_a_reference_is_text(value: str) -> None:
    found = check(f"path 'x', null_value {value}", v="{env:X}")
    assert found.errors == ()
    assert found.plan is not None
    assert "references" not in found.plan["steps"][0]
    assert not found.plan["needs_own_jvm"]


@pytest.mark.parametrize(
    ("options", "place", "words"),
    [
        ("path 'x/${env:X}'", "'x/$", "option 'path' decides where the rows are"),
        ("path 'x', header '${env:X}'", "'${env", "option 'header' of connector 'csv' cannot be '${env:X}'"),
        ("path 'x', mode '${env:X}'", "'${env", "option 'mode' of connector 'csv' cannot be '${env:X}'"),
        (
            "path 'x', partition_by '${env:X}'",
            "'${env",
            "partition_by names '${env:X}', which is not a column",
        ),
        ("path 'x', null_value ${env:X}", "${env", "the reference ${env:X} must be in quotes"),
        ("path 'x', '${env:X}' 'y'", "${env", "the reference ${env:X} has no meaning here"),
        ("path 'x', null_value '${secret:x}'", "${secret", "is not a reference: write ${secret:scope/key}"),
        ("path 'x', null_value '${secret:../x}'", "${secret", "is not a reference"),
        ("path 'x', null_value '${env:}'", "${env", "is not a reference: write ${env:NAME}"),
    ],
)
def test_a_wrong_reference_is_shown_with_its_place(options: str, place: str, words: str) -> None:
    error, *_ = check(options).errors
    assert words in error.message
    assert error.source_line[error.column - 1 :].startswith(place)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT '${env:X}'",
        "SET spark.x = '${secret:s/k}'",
        "CREATE VIEW v AS SELECT `${env:X}`",
        "ASSERT '${env:X}' = 'x'",
        "EXPLAIN SELECT '${env:X}'",
        "CREATE TABLE `${env:X}` USING print",
        "CREATE TABLE t (a INT, b AS '${env:X}') USING csv OPTIONS (path 'x')",
        "EXECUTE STATEMENT SET BEGIN INSERT INTO p SELECT '${env:X}'; END",
    ],
)
def test_a_reference_outside_of_options_is_refused(statement: str) -> None:
    messages = [error.message for error in compile_text(f"CREATE TABLE p USING print; {statement}").errors]
    assert any("a reference can only be in the value of an option of a table" in each for each in messages)


def test_a_table_takes_the_options_of_its_connection_and_its_own_win() -> None:
    text = "CREATE TABLE t (a INT) WITH ('connection' = 'exports', 'path' = 'x', 'csv.field-delimiter' = ',')"
    found = compile_text(text + USE)
    assert found.errors == ()
    assert found.plan is not None
    table = found.plan["steps"][0]
    assert (table["connector"], table["options"]["delimiter"]) == ("csv", ",")
    assert table["references"] == {"null_value": [{"kind": "secret", "name": "exports/null"}]}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("'connection' = 'export', 'path' = 'x'", "no connection has the name 'export'"),
        ("'connector' = 'json', 'connection' = 'exports'", "is of connector 'csv', not of 'json'"),
        ("'connection' = 'exports', 'cluster_name' = 'exports'", "has the same meaning as 'connection'"),
        ("'connection' = 'exports'", "connector 'csv' needs option 'path'"),
    ],
)
def test_a_wrong_connection_is_an_error(options: str, words: str) -> None:
    error, *_ = compile_text(f"CREATE TABLE t (a INT) WITH ({options}){USE}").errors
    assert words in error.message


def test_without_a_catalog_a_connection_is_a_warning_and_the_rest_is_checked() -> None:
    text = f"CREATE TABLE t WITH ('connection' = 'crm'){USE}"
    found = check_script(text, file="s.sql", base_dir="/base", variables={})
    assert (found.plan, found.errors) == (None, ())
    assert [warning.column for warning in found.warnings] == [37]
    broken = check_script(f"{text}; INSERT INTO q SELECT 1", file="s.sql", base_dir="/base", variables={})
    assert ["unknown table 'q'" in error.message for error in broken.errors] == [True]


def test_many_references_compile_in_linear_time() -> None:
    value = "'" + "${env:X}" * 20_000 + "'"
    found = bounded.outcome(lambda: check(f"path 'x', null_value {value}"))
    assert isinstance(found, Check)
