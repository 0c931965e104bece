# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
import json
from typing import Any

import pytest

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.text.errors import SqlError


def plan(text: str, **variables: str) -> dict[str, Any]:
    return compile_script(text, file="s.sql", base_dir="/base", variables=variables)


def steps(text: str, kind: str, **variables: str) -> list[dict[str, Any]]:
    return [step for step in plan(text, **variables)["steps"] if step["kind"] == kind]


SCRIPT = """\
-- a job
SET spark.sql.shuffle.partitions = 4;
CREATE TABLE src (id INT, ts TIMESTAMP) USING csv OPTIONS (path 'in/${day}', header false);
CREATE TABLE dst WITH ('connector'='filesystem', 'format'='parquet', 'path'='out');
  CREATE VIEW v AS SELECT * FROM src WHERE day = '${day}';
INSERT OVERWRITE dst SELECT * FROM v
"""


def test_a_plan_is_json_with_a_position_for_every_statement() -> None:
    made = plan(SCRIPT, day="2026-01-01")
    assert json.loads(json.dumps(made)) == made
    assert (made["version"], made["file"], made["source"]) == (2, "s.sql", SCRIPT)
    assert [(step["kind"], step["line"], step["column"]) for step in made["steps"]] == [
        ("set", 2, 1),
        ("table", 3, 1),
        ("table", 4, 1),
        ("view", 5, 3),
        ("insert", 6, 1),
    ]


def test_tables_are_source_or_sink_by_their_use() -> None:
    source, target = steps(SCRIPT, "table", day="d")
    assert (source["read"], source["written"], source["location"]) == (True, False, "/base/in/d")
    assert (target["read"], target["written"], target["location"]) == (False, True, "/base/out")
    assert source["options"]["path"] == source["location"]


@pytest.mark.parametrize(
    ("spark", "flink"),
    [
        (
            "USING parquet OPTIONS (path 'x', compression 'gzip')",
            "WITH ('connector'='filesystem', 'format'='parquet', 'path'='x', 'compression'='gzip')",
        ),
        (
            "USING CSV OPTIONS ('path' = 'x', header false)",
            "WITH ('Connector'='FileSystem', 'Format'='CSV', 'path'='x', 'header'='false')",
        ),
        ("USING json OPTIONS (path 'x')", "WITH ('connector'='json', 'path'='x')"),
        (
            "USING csv OPTIONS (path 'x', delimiter ';', null_value '-')",
            "WITH ('connector'='csv', 'path'='x', 'csv.field-delimiter'=';', 'csv.null-literal'='-')",
        ),
        (
            "USING csv OPTIONS (path 'x', delimiter ';')",
            """WITH ('connector.type'='filesystem', 'connector.path'='x', 'Format.Type'='csv',
            'update-mode'='append', 'format.field-delimiter'=';', 'connector.property-version'='1')""",
        ),
        ("USING print", "WITH ('connector'='print')"),
        ("USING print OPTIONS (limit 3)", "WITH ('connector'='print', 'limit'='3')"),
    ],
)
def test_both_accents_give_the_same_plan(spark: str, flink: str) -> None:
    one, other = (
        steps(f"CREATE TABLE t {options}; INSERT INTO t SELECT 1", "table") for options in (spark, flink)
    )
    for table in one + other:
        table.pop("path_at", None)  # where the text has it
    assert one == other


def test_a_script_may_read_what_it_has_written() -> None:
    text = """
    CREATE TABLE t USING parquet OPTIONS (path 'x');
    INSERT INTO t SELECT 1 AS a;
    INSERT INTO t SELECT 2 AS a;
    CREATE TABLE p USING print;
    INSERT INTO p SELECT * FROM t;
    CREATE TABLE again USING parquet OPTIONS (path 'x');
    INSERT INTO p SELECT * FROM again
    """
    assert [(step["read"], step["written"]) for step in steps(text, "table")] == [
        (True, True),
        (False, True),
        (True, False),
    ]


P = "USING parquet OPTIONS (path"


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "nothing to do: the script has no INSERT"),
        ("\n-- only words\n", 1, 1, "nothing to do"),
        (f"CREATE TABLE t {P} 'x');", 1, 1, "nothing to do"),
        ("SET spark.a = 1;\nGRANT SELECT", 2, 1, "'GRANT' is not supported here"),
        ("SET job.mode = streamin", 1, 16, "did you mean 'streaming'?"),
        ("CREATE TABLE t\n  USING parquet\n  OPTIONS (pth 'x')", 3, 12, "did you mean 'path'?"),
        ("CREATE TABLE t USING parqet", 1, 22, "unknown connector 'parqet'; did you mean 'parquet'?"),
        (
            "CREATE TABLE t USING wxyz",
            1,
            22,
            "known are parquet, csv, json, orc, text, redis",
        ),
        ("CREATE TABLE t USING filesystem", 1, 22, "unknown connector 'filesystem'"),
        (
            "CREATE TABLE t WITH ('connector.type'='csv', 'connector'='json')",
            1,
            46,
            "'connector.type' has the same",
        ),
        ("CREATE TABLE t WITH ('connector'='csv', 'update-mode'='upsert')", 1, 55, "can only be 'append'"),
        ("CREATE TABLE t WITH ('connector.type'='csv', 'connector.pth'='x')", 1, 46, "unknown option 'pth'"),
        ("CREATE TABLE t USING csv OPTIONS ('connector.path' 'x')", 1, 35, "unknown option 'connector.path'"),
        ("CREATE TABLE t WITH ('path'='x')", 1, 16, "WITH (...) needs 'connector' = '...'"),
        ("CREATE TABLE t WITH ('connector'='filesytem')", 1, 34, "did you mean 'filesystem'?"),
        (
            "CREATE TABLE t WITH ('connector'='filesystem')",
            1,
            34,
            "needs 'format' = one of parquet, csv, json, orc, text",
        ),
        ("CREATE TABLE t WITH ('connector'='filesystem', 'format'='cvs')", 1, 57, "did you mean 'csv'?"),
        ("CREATE TABLE t WITH ('connector'='filesystem', 'format'='print')", 1, 57, "unknown format 'print'"),
        (
            "CREATE TABLE t WITH ('connector'='csv', 'format'='csv', 'path'='x')",
            1,
            41,
            "unknown option 'format'",
        ),
        ("CREATE TABLE t USING csv OPTIONS (path 'x', mode 'no')", 1, 50, "option 'mode'"),
        (" CREATE TABLE t USING csv", 1, 2, "connector 'csv' needs option 'path'"),
        ("CREATE TABLE t (a INT) USING inline OPTIONS (rows '[[1, 2]]')", 1, 51, "row 1 has 2 values"),
        (f"CREATE TABLE t {P} 'x');\nCREATE TABLE T {P} 'y')", 2, 14, "'T' is already declared in line 1"),
        (f"CREATE TABLE t {P} 'x');\nCREATE VIEW t AS SELECT 1", 2, 13, "'t' is already declared in line 1"),
        (f"CREATE TABLE carriers {P} 'x');\nINSERT INTO carrers SELECT 1", 2, 13, "did you mean 'carriers'?"),
        ("INSERT INTO t SELECT 1", 1, 13, "unknown table 't'; declare it with CREATE TABLE before"),
        ("CREATE VIEW v AS SELECT 1;\nINSERT INTO v SELECT 1", 2, 13, "'v' is a view"),
        (
            "CREATE TABLE t (a INT) USING inline OPTIONS (rows '[]');\nINSERT INTO t SELECT 1",
            2,
            13,
            "connector 'inline' of table 't' can only be read",
        ),
        (
            "CREATE TABLE p USING print;\nINSERT INTO p SELECT *\n FROM p",
            3,
            7,
            "connector 'print' of table 'p' can only be written",
        ),
        (
            f"CREATE TABLE t {P} 'x');\nINSERT INTO t BY NAME SELECT 1 AS a",
            2,
            13,
            "BY NAME needs declared columns",
        ),
    ],
)
def test_a_mistake_is_found_without_spark_and_shown_with_its_position(
    text: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(SqlError) as caught:
        plan(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.source_line == text.split("\n")[line - 1]


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE TABLE t {P} 'x'); INSERT INTO t SELECT * FROM t",
        f"CREATE TABLE t {P} 'x'); INSERT INTO t WITH t AS (SELECT * FROM t) SELECT * FROM t",
        f"CREATE TABLE t {P} 'x'); INSERT OVERWRITE t SELECT (SELECT max(a) FROM y, t)",
        f"CREATE TABLE t {P} 'x', mode 'error'); INSERT INTO t SELECT * FROM T",
        f"CREATE TABLE s {P} 'x'); CREATE TABLE t {P} './x/'); INSERT INTO t SELECT * FROM s",
        f"CREATE TABLE s {P} 'file:/base/x'); CREATE TABLE t {P} 'x'); INSERT INTO t SELECT * FROM s",
        f"CREATE TABLE s {P} 'x/y'); CREATE TABLE t {P} 'x'); INSERT INTO t SELECT * FROM s",
        f"CREATE TABLE s {P} 'x'); CREATE TABLE t {P} 'x/y'); INSERT INTO t SELECT * FROM s",
        f"CREATE TABLE s {P} 'x/*.parquet'); CREATE TABLE t {P} 'x'); INSERT INTO t SELECT * FROM s",
        f"CREATE TABLE t {P} 'x'); CREATE VIEW v AS TABLE t; CREATE VIEW w AS TABLE v; INSERT INTO t TABLE w",
        # This INSERT does not read it, but it would be deleted.
        f"CREATE TABLE s {P} 'x/y'); CREATE TABLE t {P} '.'); INSERT OVERWRITE t SELECT 1",
        f"CREATE TABLE s {P} 'x/y');CREATE TABLE t {P} 'x');INSERT INTO s TABLE y;INSERT OVERWRITE t TABLE y",
    ],
)
def test_an_insert_that_would_destroy_its_input_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="refused: this INSERT"):
        plan(text)


@pytest.mark.parametrize(
    "text",
    [
        f"CREATE TABLE t {P} 'x'); INSERT INTO t SELECT t, 1 AS x FROM y",
        f"CREATE TABLE t {P} 'x'); INSERT INTO t WITH t AS (SELECT 1) SELECT * FROM t",
        f"CREATE TABLE s {P} 'x'); CREATE TABLE t {P} 'xy'); INSERT INTO t SELECT * FROM s",
        f"CREATE TABLE s {P} 'x'); CREATE TABLE t {P} 'x'); INSERT INTO t SELECT 1",
        f"CREATE TABLE s {P} 'x'); CREATE TABLE t {P} 'x'); INSERT OVERWRITE t SELECT 1",
        f"CREATE TABLE s {P} 'x/y'); CREATE TABLE t {P} 'x'); INSERT INTO t SELECT 1",
        f"CREATE OR REPLACE TABLE t {P} 'x'); CREATE OR REPLACE TABLE t {P} 'y'); INSERT INTO t SELECT 1",
    ],
)
def test_an_insert_that_destroys_nothing_is_not_refused(text: str) -> None:
    assert len(steps(text, "insert")) == 1


def test_an_error_behind_a_long_value_points_at_the_line_of_the_file() -> None:
    text = "CREATE TABLE t USING csv OPTIONS (path '${p}', nope 1);"
    with pytest.raises(SqlError) as caught:
        plan(text, p="a\nb\nc")
    assert (caught.value.line, caught.value.column) == (1, text.index("nope") + 1)


def test_names_may_come_from_variables() -> None:
    text = f"CREATE TABLE ${{t}} {P} 'x'); INSERT INTO ${{t}} SELECT ${{n:-1}}"
    assert steps(text, "insert", t="out")[0]["target"] == "out"


@pytest.mark.parametrize(
    ("path", "beside"), [("x", True), ("./x", True), ("/x", False), ("~/x", False), ("s3a://b/x", False)]
)
def test_the_plan_says_which_paths_mean_the_folder_of_the_definition(path: str, *, beside: bool) -> None:
    (table,) = steps(f"CREATE TABLE t {P} '{path}'); INSERT INTO t SELECT 1", "table")
    assert table["beside"] is beside


def test_a_relative_path_needs_a_folder() -> None:
    with pytest.raises(SqlError, match="path 'x' is relative, and the definition names no folder"):
        compile_script(f"CREATE TABLE t {P} 'x')", file="s.sql", base_dir="", variables={})
    text = f"CREATE TABLE t {P} '/x'); INSERT INTO t SELECT 1"
    assert compile_script(text, file="s.sql", base_dir="", variables={})["directory"] == ""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("csv.`orders.csv`", True),
        ("CSV . `orders.csv`", True),
        ("csv.`/data/orders.csv`", False),
        ("parquet.`s3a://bucket/x`", False),
        ("t.`column`", False),
        ("csv", False),
    ],
)
def test_a_query_that_names_files_by_a_relative_path_is_known(source: str, *, expected: bool) -> None:
    assert (
        plan(f"CREATE TABLE p USING print; INSERT INTO p SELECT * FROM {source}")["names_files"] is expected
    )
