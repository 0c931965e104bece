import pytest

from spark_runner.sql.grammar.parser import parse
from spark_runner.sql.grammar.references import references
from spark_runner.sql.grammar.statements import CreateTable, CreateView, Insert, ResetStatement, SetStatement
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Anchor, Passage
from spark_runner.sql.text.source import ScriptSource


def passage(text: str) -> Passage:
    return Passage(ScriptSource("s.sql", text), text, (Anchor(0, 0, verbatim=True),))


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("SET spark.sql.shuffle.partitions = 8", "spark.sql.shuffle.partitions", "8"),
        ("set spark.a-b=x y  z", "spark.a-b", "x y  z"),
        ("SET 'spark.a' = 'b c'", "spark.a", "b c"),
        ("SET spark.zone = America/New_York", "spark.zone", "America/New_York"),
        ("SET spark.a = 'b' || 'c'", "spark.a", "'b' || 'c'"),
        ("SET spark.a /* x */ = -1 -- y", "spark.a", "-1"),
        ("SET spark.a = ''", "spark.a", ""),
        ("SET `spark.a``b` = `c d`", "spark.a`b", "c d"),
    ],
)
def test_set(text: str, key: str, value: str) -> None:
    statement = parse(passage(text))
    assert isinstance(statement, SetStatement)
    assert (statement.key, statement.value) == (key, value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("RESET", ""),
        ("reset spark.sql.shuffle.partitions -- x", "spark.sql.shuffle.partitions"),
        ("RESET /* x */ 'spark.a-b'", "spark.a-b"),
        ("RESET `spark.a`", "spark.a"),
    ],
)
def test_reset(text: str, key: str) -> None:
    statement = parse(passage(text))
    assert isinstance(statement, ResetStatement)
    assert statement.key == key


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t (a INT, `b c` MAP<INT, INT> COMMENT ',') USING csv OPTIONS (path 'x', header true)",
        "create or replace temp table t(a int,`b c` string)using csv options('path'='x','header'='true')",
        "CREATE TEMPORARY TABLE t (a INT, `b c` DECIMAL(6, 2)) USING csv OPTIONS (path = 'x', 'header' true)",
    ],
)
def test_create_table_in_the_accent_of_spark(text: str) -> None:
    statement = parse(passage(text))
    assert isinstance(statement, CreateTable)
    assert (statement.name, statement.connector) == ("t", "csv")
    assert statement.columns is not None
    assert statement.columns.names == ("a", "b c")
    assert {option.key: option.value for option in statement.options} == {"path": "x", "header": "true"}


def test_create_table_in_the_accent_of_flink() -> None:
    statement = parse(
        passage("CREATE TABLE `t``1` WITH ('connector' = 'filesystem', 'format'='csv', 'path'='x')")
    )
    assert isinstance(statement, CreateTable)
    assert (statement.name, statement.connector, statement.columns) == ("t`1", "", None)
    assert [option.key for option in statement.options] == ["connector", "format", "path"]


@pytest.mark.parametrize(
    ("text", "name", "query"),
    [
        ("CREATE VIEW v AS SELECT 1", "v", "SELECT 1"),
        ("CREATE OR REPLACE TEMP VIEW `v w` AS\n (SELECT 1)", "v w", "(SELECT 1)"),
        (
            "create temporary view v as with a as (select 1) select * from a",
            "v",
            "with a as (select 1) select * from a",
        ),
        ("CREATE VIEW v AS VALUES (1), (2)", "v", "VALUES (1), (2)"),
    ],
)
def test_create_view(text: str, name: str, query: str) -> None:
    statement = parse(passage(text))
    assert isinstance(statement, CreateView)
    assert (statement.name, statement.query.text) == (name, query)


@pytest.mark.parametrize(
    ("text", "target", "overwrite", "by_name", "query"),
    [
        ("INSERT INTO t SELECT 1", "t", False, False, "SELECT 1"),
        ("insert into table t select 1", "t", False, False, "select 1"),
        ("INSERT INTO table SELECT 1", "table", False, False, "SELECT 1"),
        ("INSERT OVERWRITE t BY NAME SELECT 1 AS a", "t", True, True, "SELECT 1 AS a"),
        ("INSERT OVERWRITE TABLE `t u` VALUES (1)", "t u", True, False, "VALUES (1)"),
        ("INSERT INTO t TABLE u", "t", False, False, "TABLE u"),
        ("INSERT INTO t ((SELECT 1))", "t", False, False, "((SELECT 1))"),
        ("INSERT INTO t FROM u SELECT a", "t", False, False, "FROM u SELECT a"),
        ("INSERT INTO t -- why\n SELECT 1 -- end", "t", False, False, "SELECT 1 -- end"),
    ],
)
def test_insert(text: str, target: str, overwrite: bool, by_name: bool, query: str) -> None:
    statement = parse(passage(text))
    assert isinstance(statement, Insert)
    assert (statement.target, statement.overwrite, statement.by_name) == (target, overwrite, by_name)
    assert statement.query.text == query


SUPPORTED = "a script may have SET, RESET, CREATE TABLE, CREATE VIEW"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("(a) SELECT 1", 1, f"'(' is not supported here; {SUPPORTED}"),
        ("FROM t INSERT INTO u SELECT 1", 8, "a query cannot hold an INSERT"),
        ("WITH c AS (SELECT 1) DELETE FROM u", 22, "a query cannot hold a DELETE"),
        ("GRANT SELECT ON t TO u", 1, f"'GRANT' is not supported here; {SUPPORTED}"),
        ("DROP TABLE t", 1, "DROP is refused: names of a script end with it"),
        ("CREATE INDEX i", 8, f"'INDEX' is not supported here; {SUPPORTED}"),
        ("CREATE", 1, f"'CREATE' is not supported here; {SUPPORTED}"),
        ("EXPLAIN DROP TABLE t", 9, "expected a query or an INSERT"),
        ("SET", 1, "write SET key = value"),
        ("SET spark.a", 12, "expected '=' and a value, found the end of the statement"),
        ("SET spark.a =", 14, "expected a value"),
        ("SET TIME ZONE = 'UTC'", 1, "write SET key = value"),
        ("SET 'a' 'b' = 1", 1, "write SET key = value"),
        ("SET `job`.mode = streaming", 1, "write SET key = value"),
        ("SET job/**/.mode = streaming", 1, "write SET key = value"),
        ("RESET spark.a spark.b", 1, "write RESET, or RESET key"),
        ("RESET spark.a = 1", 1, "write RESET, or RESET key"),
        ("RESET ''", 1, "write RESET, or RESET key"),
        ("CREATE TABLE t", 15, "expected USING connector OPTIONS"),
        ("CREATE TABLE USING csv", 20, "expected USING connector OPTIONS"),
        ("CREATE TEMPORARY TABLE a.b USING csv", 25, "has one part, without dots"),
        ("CREATE TABLE a.b USING csv", 14, "write CREATE TABLE IF NOT EXISTS"),
        ("CREATE TABLE 't' USING csv", 14, "expected the name of a table, found ''t''"),
        ("CREATE TABLE t () USING csv", 17, "expected the name of a column"),
        ("CREATE TABLE t (a) USING csv", 18, "expected the type of column 'a'"),
        ("CREATE TABLE t (a INT,) USING csv", 23, "expected the name of a column"),
        ("CREATE TABLE t (a INT, A INT) USING csv", 24, "column 'A' is declared twice"),
        ("CREATE TABLE t (a INT USING csv", 16, "this parenthesis of the columns is never closed"),
        ("CREATE TABLE t USING csv OPTIONS path 'x'", 34, "expected '(', found 'path'"),
        ("CREATE TABLE t USING csv OPTIONS (path)", 39, "expected the value of option 'path'"),
        ("CREATE TABLE t USING csv OPTIONS (path x)", 40, "expected the value of option 'path'"),
        ("CREATE TABLE t USING csv OPTIONS (path 'x' 'y')", 44, "expected ',' or ')', found ''y''"),
        ("CREATE TABLE t USING csv OPTIONS (path 'x',)", 44, "expected the name of an option"),
        ("CREATE TABLE t USING csv OPTIONS (path 'x', PATH 'y')", 45, "option 'PATH' is given twice"),
        ("CREATE TABLE t USING csv OPTIONS (path 'x'", 43, "expected ',' or ')'"),
        ("CREATE TABLE t USING csv OPTIONS (path 'x') AS SELECT 1", 45, "unexpected 'AS'"),
        ("CREATE VIEW v (a) AS SELECT 1", 15, "expected AS and a query, found '('"),
        ("CREATE VIEW v AS DROP TABLE t", 18, "expected a query"),
        ("CREATE VIEW v AS", 17, "expected a query (SELECT, WITH, VALUES, FROM or TABLE), found the end"),
        ("INSERT t SELECT 1", 8, "expected INTO or OVERWRITE"),
        ("INSERT INTO t", 14, "expected a query"),
        ("INSERT INTO t (a, b) SELECT 1, 2", 15, "a list of columns is not supported here, use BY NAME"),
        ("INSERT INTO t PARTITION (a=1) SELECT 1", 15, "expected a query"),
        ("CREATE VIEW v AS WITH (`k`='v') SELECT 1", 18, "options belong behind the name of a table"),
        ("INSERT INTO t FROM u INSERT INTO v SELECT 1", 22, "a query cannot hold an INSERT"),
        ("INSERT INTO t SELECT 1\nINSERT INTO u SELECT 2", 1, "a query cannot hold an INSERT"),
        ("CREATE VIEW v AS FROM t INSERT WITH SCHEMA EVOLUTION INTO u SELECT 1", 25, "cannot hold an INSERT"),
        ("CREATE VIEW v AS FROM t JOIN u ON a < 1E+5INSERT OVERWRITE DIRECTORY '/x'", 43, "hold an INSERT"),
        ("INSERT INTO t WITH c AS (SELECT 1) DELETE FROM u", 36, "a query cannot hold a DELETE"),
        ("INSERT INTO t WITH c (a), select (SELECT 1) UPDATE u SET a = 1", 45, "cannot hold a UPDATE"),
        ("INSERT INTO t WITH c AS (SELECT 1) MERGE INTO u USING c ON true", 36, "cannot hold a MERGE"),
    ],
)
def test_unreadable_records_are_shown_beside_readable_ones(text: str, column: int, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(passage(text))
    assert message in caught.value.message
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a FROM t", {"t"}),
        ("SELECT a, b FROM T x, `U` y WHERE a IN (SELECT v, w FROM z)", {"t", "u", "z"}),
        ("SELECT * FROM a JOIN b ON a.x = b.x LEFT JOIN c USING (x), d", {"a", "b", "c", "d"}),
        ("SELECT (SELECT max(i) FROM x, t) FROM (SELECT 1, b)", {"x", "t"}),
        ("WITH c AS (SELECT * FROM t), d AS (SELECT * FROM c) SELECT * FROM c, d", {"t"}),
        ("WITH t AS (SELECT * FROM t), u AS (SELECT 1) SELECT * FROM u", {"t"}),
        ("SELECT * FROM (WITH c AS (SELECT f(1) FROM t) SELECT * FROM c)", {"t"}),
        ("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) x, t", {"t"}),
        ("WITH c AS (WITH t AS (SELECT 1) SELECT * FROM t) SELECT * FROM c, t", {"t"}),
        ("SELECT 1 FROM u WINDOW w AS (), t AS () UNION ALL SELECT * FROM t", {"u", "t"}),
        ("SELECT * FROM VALUES (1), (2) AS v, t", {"t"}),
        ("SELECT a IS DISTINCT FROM b, c FROM t", {"t"}),
        ("TABLE t", {"t"}),
        ("SELECT * FROM db.t, parquet.`/x`, range(5)", {"range"}),
        ("SELECT t.a FROM u AS t GROUP BY t, a ORDER BY t, b", {"u"}),
        ("SELECT '-- FROM x' /* FROM y */ FROM t -- FROM z", {"t"}),
        ("VALUES (1, a)", set()),
    ],
)
def test_references_are_the_names_where_tables_stand(query: str, expected: set[str]) -> None:
    assert set(references(Cursor(passage(query)).tokens)) == expected
