"""Tables of Spark catalogs: one in memory that supports MERGE, a database behind JDBC, and Spark's own."""

# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.driver.outcome import is_permanent
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.preview import preview
from spark_runner.sql.text.errors import SqlError
from tests.catalog_support import JDBC, MERGING, add_merging_catalog

pytestmark = pytest.mark.spark

Run = Callable[..., list[dict[str, Any]]]
MEMORY = f"SET spark.sql.catalog.mem = {MERGING};\nCREATE NAMESPACE IF NOT EXISTS mem.db;\n"
SRC = """\
CREATE TABLE src (id INT, name STRING) USING inline OPTIONS (rows '[[1, "a"], [2, "b"], [3, "c"]]');
"""
TABLE = "CREATE TABLE IF NOT EXISTS mem.db.t (id INT NOT NULL, name STRING) PARTITIONED BY (id);\n"


@pytest.fixture
def merging(spark: SparkSession) -> SparkSession:
    """The session, whose JVM has the class of a catalog that supports MERGE."""
    add_merging_catalog(spark)
    return spark


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    def run_script(text: str, **added: Any) -> list[dict[str, Any]]:
        return execute(spark, {**planned(text, tmp_path), **added}, lambda _phase: None)

    return run_script


def planned(text: str, folder: Path) -> dict[str, Any]:
    plan = compile_script(text, file="s.sql", base_dir=str(folder), variables={})
    return dict(json.loads(json.dumps(plan)))


def derby(folder: Path) -> str:
    """The settings of a catalog that is a database of this test."""
    return (
        f"SET spark.sql.catalog.shop = {JDBC};\n"
        f"SET spark.sql.catalog.shop.url = 'jdbc:derby:memory:{folder.name};create=true';\n"
    )


# A catalog that supports MERGE


@pytest.mark.usefixtures("merging")
def test_a_merge_changes_adds_and_removes_rows_of_a_table(run: Run) -> None:
    results = run(
        f"""{MEMORY}{TABLE}{SRC}
        INSERT INTO mem.db.t VALUES (1, 'old'), (2, 'old'), (9, 'kept');
        MERGE INTO mem.db.t AS t USING src s ON t.id = s.id
          WHEN MATCHED AND s.id = 1 THEN DELETE
          WHEN MATCHED THEN UPDATE SET name = s.name
          WHEN NOT MATCHED THEN INSERT *;
        ASSERT (SELECT array_sort(collect_list(concat(id, name))) FROM mem.db.t) = array('2b', '3c', '9kept');
        MERGE INTO mem.db.t t USING (SELECT id + 1 AS id FROM src WHERE id = 3) s ON t.id = s.id
          WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, 'new');
        ASSERT (SELECT name FROM mem.db.t WHERE id = 4) = 'new';
        """
    )
    named = [(each["target"], each["connector"], each["rows"], each["line"]) for each in results]
    # A MERGE writes rows anew that it does not change, so their number says nothing.
    assert named == [
        ("mem.db.t", "catalog", 3, 6),
        ("mem.db.t", "catalog", None, 7),
        ("mem.db.t", "catalog", None, 12),
    ]
    assert json.loads(json.dumps(results)) == results


@pytest.mark.usefixtures("merging")
def test_use_completes_names_of_two_parts(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(
        f"""{MEMORY}{TABLE}{SRC}USE CATALOG mem;
        INSERT INTO db.t SELECT * FROM src;
        ASSERT (SELECT count(*) FROM db.t JOIN src USING (id)) = 3;
        USE mem.db; SHOW TABLES IN mem.db; DESCRIBE db.t"""
    )
    shown = capsys.readouterr().out
    assert "db        | t         | false" in shown
    described = next(line.split() for line in shown.splitlines() if line.startswith("id "))
    assert described[:3] == ["id", "|", "int"]


@pytest.mark.usefixtures("merging")
@pytest.mark.parametrize(
    ("statement", "marked", "message"),
    [
        ("INSERT INTO mem.db.t SELECT id,\n nope FROM src", "nope", "UNRESOLVED_COLUMN"),
        ("INSERT INTO mem.db.t SELECT id FROM src", "INSERT", "NOT_ENOUGH_DATA_COLUMNS"),
        ("INSERT INTO mem.db.t SELECT name,\n id FROM src", "INSERT", "CANNOT_SAFELY_CAST"),
        (
            "MERGE INTO mem.db.t t USING src s ON t.id = s.id\n WHEN MATCHED THEN UPDATE SET name = s.nope",
            "s.nope",
            "UNRESOLVED_COLUMN",
        ),
        ("MERGE INTO mem.db.t t USING src s ON t.id = s.id\n WHEN MATCHED THEN", ";", "PARSE_SYNTAX_ERROR"),
        ("SELECT *\n FROM mem.db.nope", "mem.db.nope", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_an_error_of_spark_points_at_its_place(run: Run, statement: str, marked: str, message: str) -> None:
    text = f"{MEMORY}{TABLE}{SRC}{statement};"
    with pytest.raises(SqlError, match=message) as caught:
        run(text)
    error, offset = caught.value, text.index(marked, text.index(statement))
    place = (text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
    assert (error.line, error.column) == place, str(error)
    assert is_permanent(error)
    assert "no catalog" not in error.message


@pytest.mark.usefixtures("merging")
def test_spark_analyses_statements_on_catalogs_only_when_it_may_look_into_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    written = f"""{MEMORY}{TABLE}{SRC}USE mem.db;
        CREATE VIEW v AS SELECT * FROM mem.db.t;
        INSERT INTO mem.db.t SELECT * FROM src;
        SELECT id FROM v;"""
    plan = planned(written, tmp_path)
    for connect, why in ((False, "--connect"), (True, "the script creates 'mem.db")):
        report = analyse_script(spark, plan, connect=connect)
        assert report["errors"] == []
        skipped = [each.get("skipped", "") for each in report["statements"][-2:]]
        assert [why in each for each in skipped] == [True, True], skipped
    guarantees = [each.get("guarantee") for each in report["statements"]]
    assert [each for each in guarantees if each] == [
        "at least once: a further attempt adds its rows again; MERGE INTO by a key does not"
    ]


@pytest.mark.usefixtures("merging")
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM mem.db.t WHERE id IN (SELECT id FROM o)",
        "MERGE INTO mem.db.t USING (SELECT id FROM o) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ],
)
def test_a_subquery_of_a_change_reads_no_table_of_the_current_namespace(
    run: Run, spark: SparkSession, tmp_path: Path, statement: str
) -> None:
    made = (
        f"{MEMORY}{TABLE}{SRC}CREATE TABLE IF NOT EXISTS mem.db.o (id INT);"
        " INSERT INTO mem.db.t VALUES (1, 'kept'); INSERT INTO mem.db.o VALUES (1); USE mem.db;\n"
    )
    with pytest.raises(SqlError, match=r"'o' is no table or view of the script.*: mem\.db\.o") as caught:
        run(f"{made}{statement}")
    assert (caught.value.line, caught.value.column) == (6, statement.index("FROM o") + 6)
    run(f"{made}{statement.replace('FROM o', 'FROM mem.db.o')}")
    named = f"{MEMORY}{TABLE}{SRC}CREATE VIEW o AS SELECT 9 AS id; USE mem.db;\n{statement}"
    assert analyse_script(spark, planned(named, tmp_path), connect=True)["errors"] == []


# A database behind JDBC


def test_a_database_is_a_catalog(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    shop = derby(tmp_path)
    results = run(
        f"""{shop}{SRC}
        CREATE NAMESPACE IF NOT EXISTS shop.S1;
        CREATE TABLE IF NOT EXISTS shop.S1.t (id INT, name STRING);
        INSERT INTO shop.S1.t SELECT * FROM src;
        INSERT INTO shop.S1.t BY NAME SELECT 'd' AS name, 4 AS id;
        ASSERT (SELECT sum(id) FROM shop.S1.t) = 10;
        """
    )
    assert [each["rows"] for each in results] == [None, None]  # Spark does not count rows of this kind
    plan = planned(f"{shop}SELECT 1", tmp_path)
    shown = preview(spark, plan, "shop.S1.t", 2, 20)
    assert [column["name"] for column in shown["columns"]] == ["id", "name"]
    assert (len(shown["rows"]), shown["has_more"]) == (2, True)

    wrong = planned(f"{shop}{SRC}\nINSERT INTO shop.S1.t SELECT id FROM src", tmp_path)
    report = analyse_script(spark, wrong, connect=True)
    assert ["NOT_ENOUGH_DATA_COLUMNS" in error["message"] for error in report["errors"]] == [True]
    assert analyse_script(spark, wrong)["errors"] == []


@pytest.mark.parametrize(
    ("settings", "read", "message"),
    [
        ("USE shop.S3;", "t", "'t' is no table or view of the script.*: shop.S3.t"),
        ("", "IDENTIFIER('shop.S3.' || 't')", "reads 'shop.S3.t', and replaces its rows"),
        ("SET spark.sql.ansi.doubleQuotedIdentifiers = true;", '"shop"."S3"."t"', "reads 'shop.S3.t'"),
    ],
)
def test_an_overwrite_of_what_it_reads_is_refused_by_whichever_name(
    run: Run, tmp_path: Path, settings: str, read: str, message: str
) -> None:
    shop = derby(tmp_path)
    run(
        f"""{shop}CREATE NAMESPACE IF NOT EXISTS shop.S3;
        CREATE TABLE IF NOT EXISTS shop.S3.t (id INT);
        INSERT INTO shop.S3.t VALUES (1), (2);"""
    )
    with pytest.raises(SqlError, match=message) as caught:
        run(f"{shop}{settings}\nINSERT OVERWRITE shop.S3.t SELECT id FROM {read} WHERE id > 0")
    assert caught.value.line == 4
    run(f"{shop}ASSERT (SELECT count(*) FROM shop.S3.t) = 2")


def test_a_name_of_one_part_is_no_table_of_the_current_namespace(run: Run, tmp_path: Path) -> None:
    made = f"""{derby(tmp_path)}CREATE NAMESPACE IF NOT EXISTS shop.S4;
        CREATE TABLE IF NOT EXISTS shop.S4.t (id INT); USE shop.S4;
        """
    for statement in (
        "SELECT * FROM t",
        "CREATE VIEW v AS SELECT * FROM t; SELECT * FROM v",
        "ASSERT (SELECT count(*) FROM t) = 0",
        "INSERT INTO shop.S4.t SELECT id FROM t",
    ):
        with pytest.raises(SqlError, match="'t' is no table or view of the script") as caught:
            run(f"{made}{statement}")
        assert caught.value.column == 9 + statement.index("FROM t") + len("FROM ")
    run(f"{made}CREATE VIEW t AS SELECT 7 AS id; ASSERT (SELECT id FROM t) = 7; SELECT t.* FROM S4.t")


def test_a_table_without_merge_gives_an_error_that_no_attempt_repeats(run: Run, tmp_path: Path) -> None:
    text = f"""{derby(tmp_path)}{SRC}CREATE NAMESPACE IF NOT EXISTS shop.S2;
CREATE TABLE IF NOT EXISTS shop.S2.t (id INT, name STRING);
  {{}};"""
    for statement, action in (
        ("MERGE INTO shop.S2.t t USING src s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *", "MERGE INTO"),
        ("DELETE FROM shop.S2.t WHERE id = 1", "DELETE FROM"),
    ):
        with pytest.raises(SqlError, match=f"not support this {action} of 'shop.S2.t'") as caught:
            run(text.format(statement))
        assert (caught.value.line, caught.value.column) == (6, 3)
        assert is_permanent(caught.value)


# Spark's own catalog


def test_tables_of_spark_count_their_rows_and_have_statistics(
    run: Run, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    results = run(
        f"""{SRC}CREATE DATABASE IF NOT EXISTS spark_catalog.stats;
        CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM src WHERE id > 1;
        CREATE TABLE IF NOT EXISTS stats.t (id INT, name STRING) USING parquet;
        INSERT OVERWRITE stats.t SELECT * FROM v;
        INSERT INTO spark_catalog.stats.t SELECT * FROM src;
        ANALYZE TABLE stats.t COMPUTE STATISTICS; REFRESH TABLE stats.t; SHOW COLUMNS IN stats.t;
        ASSERT (SELECT count(*) FROM stats.t) = 5;
        """
    )
    try:
        assert [(each["target"], each["rows"]) for each in results] == [
            ("stats.t", 2),
            ("spark_catalog.stats.t", 3),
        ]
        assert capsys.readouterr().out == "col_name\n--------\nid\nname\n"
    finally:
        spark.sql("DROP DATABASE spark_catalog.stats CASCADE")


def test_views_see_what_the_script_writes_into_the_table_that_they_read(
    run: Run, spark: SparkSession
) -> None:
    try:
        run(
            f"""{SRC}CREATE SCHEMA IF NOT EXISTS spark_catalog.viewed;
            CREATE TABLE IF NOT EXISTS viewed.t (id INT, name STRING) USING parquet;
            CREATE VIEW v AS SELECT max(id) AS top FROM viewed.t;
            CREATE VIEW w AS SELECT top + 100 AS top FROM v;
            ASSERT (SELECT top IS NULL FROM w);
            INSERT INTO viewed.t SELECT * FROM src;
            ASSERT (SELECT top FROM w) = 103;
            INSERT OVERWRITE viewed.t BY NAME SELECT name, id FROM src WHERE id < 3;
            ASSERT (SELECT top FROM w) = 102;
            """
        )
    finally:
        spark.sql("DROP DATABASE spark_catalog.viewed CASCADE")


# What is not allowed, or not there


@pytest.mark.parametrize(
    ("statement", "marked"),
    [
        ("SELECT * FROM nowhere.db.t", "nowhere"),
        ("INSERT INTO nowhere.db.t SELECT 1", "INSERT"),
        ("SELECT * FROM nowhere.t", "nowhere"),
        ("USE CATALOG nowhere; SELECT 1", "USE"),
        ("CREATE VIEW v AS SELECT * FROM range(1) JOIN nowhere.db.t; SELECT * FROM v", "nowhere"),
    ],
)
def test_a_catalog_that_is_not_configured_is_named(run: Run, statement: str, marked: str) -> None:
    with pytest.raises(SqlError, match=r"spark\.sql\.catalog\.nowhere") as caught:
        run(statement)
    assert caught.value.column == statement.index(marked) + 1


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM default.denied",
        "SELECT * FROM denied",
        "ASSERT (SELECT count(*) FROM denied) = 0",
        "SELECT 1 WHERE 1 IN (SELECT id FROM denied)",
        "SELECT * FROM IDENTIFIER('default.' || 'denied')",
        "INSERT INTO default.denied SELECT 1",
        "SHOW TABLES",
        f"SET spark.sql.catalog.own = {JDBC}; SELECT 1",
        "SET spark.sql.defaultCatalog = own; SELECT 1",
    ],
)
def test_the_policy_of_a_pool_can_deny_catalogs(run: Run, spark: SparkSession, statement: str) -> None:
    spark.sql("CREATE TABLE IF NOT EXISTS default.denied (id INT) USING parquet")
    try:
        with pytest.raises(SqlError, match="does not list the connector 'catalog'"):
            run(statement, denied_catalogs=True)
    finally:
        spark.sql("DROP TABLE default.denied")
    allowed = "CREATE VIEW v AS SELECT * FROM src JOIN range(3) USING (id); SELECT * FROM v"
    run(f"{SRC}{allowed}", denied_catalogs=True)
