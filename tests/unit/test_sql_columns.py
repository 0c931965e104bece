"""The columns and constraints of CREATE TABLE."""

import json

import pytest

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.grammar.column_parser import parse_columns
from spark_runner.sql.grammar.columns import Columns, Violation
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Anchor, Passage
from spark_runner.sql.text.source import ScriptSource


def passage(text: str) -> Passage:
    return Passage(ScriptSource("s.sql", text), text, (Anchor(0, 0, verbatim=True),))


def columns(text: str) -> Columns:
    return parse_columns(passage(text))


ALL = """id BIGINT NOT NULL, `a b` MAP<STRING, STRUCT<primary: INT>> COMMENT 'METADATA', -- a comment, here
  total AS price * (1 + 0.2), price DECIMAL(6, 2),
  day DATE GENERATED ALWAYS AS (CAST(ts AS DATE)) COMMENT 'of the event',
  ts TIMESTAMP,
  file STRING METADATA FROM 'file.path' VIRTUAL, file_size BIGINT NOT NULL METADATA,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  CONSTRAINT positive EXPECT (price > 0 AND id IN (1, 2)) ON VIOLATION DROP ROW,
  CONSTRAINT known EXPECT (id IS NOT NULL) ON VIOLATION FAIL UPDATE,
  CONSTRAINT kept EXPECT (true) ON VIOLATION QUARANTINE,
  CONSTRAINT k PRIMARY KEY (id, `a b`) NOT ENFORCED"""


def test_a_table_may_have_all_kinds_of_columns_and_constraints() -> None:
    found = columns(ALL)
    assert found.names == ("id", "a b", "total", "price", "day", "ts", "file", "file_size")
    assert list(found.stored) == ["id", "a b", "price", "ts"]
    computed = [
        (each.name, each.expression.text, each.type and each.type.text.strip()) for each in found.computed
    ]
    assert computed == [
        ("total", "price * (1 + 0.2)", None),
        ("day", "CAST(ts AS DATE)", "DATE"),
    ]
    metadata = [(each.name, each.type.text.strip(), each.key) for each in found.metadata]
    assert metadata == [("file", "STRING", "file.path"), ("file_size", "BIGINT", "file_size")]
    assert found.watermark is not None
    assert (found.watermark.column, found.watermark.expression.text) == ("ts", "ts - INTERVAL '5' SECOND")
    assert [(each.name, each.condition.text, each.action) for each in found.expectations] == [
        ("positive", "price > 0 AND id IN (1, 2)", Violation.DROP_ROW),
        ("known", "id IS NOT NULL", Violation.FAIL),
        ("kept", "true", Violation.QUARANTINE),
    ]
    assert found.primary_key == ("id", "a b")


def test_spark_gets_the_stored_columns_with_their_places() -> None:
    ddl = columns(ALL).ddl()
    assert ddl.text == (
        "id BIGINT NOT NULL, `a b` MAP<STRING, STRUCT<primary: INT>> COMMENT 'METADATA', "
        "price DECIMAL(6, 2), ts TIMESTAMP"
    )
    assert [ddl.origin(ddl.text.index(word)) for word in ("id", "`a b`", "price", "ts T")] == [
        *(ALL.index("id"), ALL.index("`a b`"), ALL.index("price DEC"), ALL.index("ts TIME"))
    ]


def test_columns_without_more_are_given_to_spark_as_they_are() -> None:
    text = "a INT, -- the first\n b STRING"
    assert columns(text).ddl().text == text


@pytest.mark.parametrize("name", ["metadata", "watermark", "constraint", "generated", "expect", "`primary`"])
def test_the_words_of_constraints_may_name_columns(name: str) -> None:
    assert columns(f"{name} INT, b INT NOT NULL").names == (name.strip("`"), "b")


def test_comparisons_in_expressions_do_not_hide_the_definitions_behind_them() -> None:
    found = columns(
        "a INT, big AS a > 10, small AS a < 10, more AS if(a > 1, 2, 3), "
        "d INT GENERATED ALWAYS AS (if(1 > 0, 1, 2)), "
        "e ARRAY<STRUCT<x: INT, y: INT>>, WATERMARK FOR ts AS CASE WHEN a > 5 THEN ts END, ts TIMESTAMP, "
        "CONSTRAINT c EXPECT (a > 0 AND PROCTIME() > ts) ON VIOLATION FAIL, last INT"
    )
    assert found.names == ("a", "big", "small", "more", "d", "e", "ts", "last")
    assert [each.expression.text for each in found.computed][3] == "if(1 > 0, 1, 2)"
    assert [each.condition.text for each in found.expectations] == ["a > 0 AND current_timestamp() > ts"]


def test_a_key_may_be_declared_at_its_column() -> None:
    found = columns("a INT, b STRING NOT NULL PRIMARY KEY NOT ENFORCED")
    assert (found.primary_key, found.ddl().text) == (("b",), "a INT, b STRING NOT NULL ")


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("a INT, PRIMARY KEY (a)", 22, "expected NOT ENFORCED"),
        ("a INT, PRIMARY KEY (b) NOT ENFORCED", 7, "the primary key names 'b', which is not a stored column"),
        ("a INT, c AS a, PRIMARY KEY (c) NOT ENFORCED", 15, "the primary key names 'c'"),
        ("a INT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (a) NOT ENFORCED", 32, "a table has one primary key"),
        ("a INT, PRIMARY KEY () NOT ENFORCED", 20, "expected the name of a column"),
        ("a INT, WATERMARK FOR b AS b", 21, "there is no column 'b'"),
        ("a INT, WATERMARK FOR a", 22, "expected AS and an expression"),
        ("a INT, WATERMARK FOR a AS , b INT", 26, "expected the expression of the watermark"),
        ("a INT, WATERMARK FOR a AS a, WATERMARK FOR a AS a", 29, "a table has one watermark"),
        ("a INT, CONSTRAINT c EXPECT a > 0 ON VIOLATION FAIL", 27, "expected '('"),
        ("a INT, CONSTRAINT c EXPECT (a > 0)", 34, "expected ON VIOLATION and FAIL, DROP ROW or QUARANTINE"),
        (
            "a INT, CONSTRAINT c EXPECT (a > 0) ON VIOLATION IGNORE",
            48,
            "expected FAIL, DROP ROW or QUARANTINE",
        ),
        ("a INT, CONSTRAINT c CHECK (a > 0)", 20, "expected EXPECT (condition) or PRIMARY KEY (columns)"),
        ("a INT, CHECK (a > 0)", 7, "CHECK is not supported; use CONSTRAINT name EXPECT (condition)"),
        ("a INT, UNIQUE (a)", 7, "UNIQUE is not supported"),
        ("a INT, FOREIGN KEY (a) REFERENCES b", 7, "FOREIGN is not supported"),
        ("a INT, CONSTRAINT c EXPECT () ON VIOLATION FAIL", 28, "the condition of 'c' is empty"),
        ("a INT, b INT GENERATED ALWAYS AS (/* no */)", 34, "the expression of 'b' is empty"),
        ("a INT, c AS", 11, "expected the expression of 'c'"),
        ("a INT, b INT METADATA FROM file", 27, "expected the key of the metadata, a string"),
        ("c AS 1", 0, "a table needs a column with a type"),
        ("a INT, A AS 1", 7, "column 'A' is declared twice"),
        ("a INT, a STRING METADATA", 7, "column 'a' is declared twice"),
        ("a INT, b DATE GENERATED ALWAYS AS (a) NULL", 38, "a column may be NULL unless it is NOT NULL"),
        ("a INT NULL", 6, "a column may be NULL unless it is NOT NULL; remove this word"),
        ("a INT DEFAULT 1", 6, "a column has no DEFAULT; give the value in the query, as in coalesce(x, 0)"),
        ("a INT COMMENT 'x' NOT NULL", 18, "expected ',' before 'NOT', or the end of the column"),
        ("a INT NOT NULL NOT NULL", 15, "expected ',' before 'NOT', or the end of the column"),
        ("a INT COMMENT", 13, "expected the text of the comment"),
        ("a INT, b DATE GENERATED ALWAYS AS (a) COMMENT c", 46, "expected the text of the comment"),
    ],
)
def test_a_wrong_definition_is_shown_at_its_place(text: str, offset: int, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        columns(text)
    assert message in caught.value.message
    assert caught.value.column - 1 == offset


@pytest.mark.parametrize("expression", ["abs(values)", "(values + 1)", "(map['a'])", "(table)", "f(from, a)"])
def test_a_column_may_have_the_name_of_a_word_that_begins_a_query(expression: str) -> None:
    assert plan(f"a INT, b AS {expression}")["version"] == 3


def plan(declaration: str, more: str = "") -> dict[str, object]:
    text = f"CREATE TABLE t ({declaration}) USING csv OPTIONS (path 'x'); CREATE TABLE p USING print;{more}"
    return compile_script(f"{text} INSERT INTO p SELECT * FROM t", file="s.sql", base_dir="/b", variables={})  # noqa: S608 - of this test


def test_a_plan_with_more_than_stored_columns_has_a_version_that_older_drivers_refuse() -> None:
    assert plan("a INT")["version"] == plan("a INT, WATERMARK FOR a AS a")["version"] == 2
    for more in ("b AS a", "b STRING METADATA FROM 'file.path'", "PRIMARY KEY (a) NOT ENFORCED"):
        made = plan(f"a INT, {more}")
        assert made["version"] == 3
        assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize(
    ("declaration", "more", "message"),
    [
        ("a INT, b STRING METADATA FROM 'file_pth'", "", "unknown metadata 'file_pth'"),
        ("a INT, b AS (SELECT 1)", "", "a declaration cannot hold a query; use a view"),
        ("a INT, CONSTRAINT c EXPECT (a IN (TABLE u)) ON VIOLATION FAIL", "", "cannot hold a query"),
        ("a INT, b AS (MAP a USING 'cat' AS x)", "", "a declaration cannot start a program"),
        ("a INT, PRIMARY KEY (a) NOT ENFORCED", "INSERT INTO t SELECT 1;", "cannot replace rows by"),
    ],
)
def test_what_a_connector_cannot_do_is_refused(declaration: str, more: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        plan(declaration, more)
