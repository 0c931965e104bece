"""Which queries of a part of a table give a part of their result."""

from typing import TYPE_CHECKING

import pytest

from spark_runner.sql.execution.row_by_row import NotRowByRow, reads_row_by_row, tables_read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def session(spark: "SparkSession") -> "SparkSession":
    """Tables t and u, and a view of t."""
    own = spark.newSession()
    for name in ("t", "u"):
        own.range(3).selectExpr("id AS n", "array(id) AS l").createOrReplaceTempView(name)
    own.sql("SELECT n + 1 AS n FROM t WHERE n > 0").createOrReplaceTempView("v")
    return own


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n + 1 FROM t WHERE n > 0 ORDER BY n",
        "SELECT * FROM v",
        "SELECT e FROM t LATERAL VIEW explode(l) AS e",
        "SELECT * FROM t, LATERAL (SELECT t.n + 1 AS m)",
        "SELECT * FROM t JOIN u USING (n)",
        "SELECT * FROM t CROSS JOIN (SELECT max(n) FROM u)",
        "SELECT * FROM t LEFT JOIN u ON t.n = u.n",
        "SELECT * FROM u RIGHT JOIN t ON t.n = u.n",
        "SELECT * FROM t LEFT ANTI JOIN u ON t.n = u.n",
        "SELECT * FROM t WHERE n IN (SELECT n FROM u GROUP BY n)",
        "SELECT n FROM t UNION ALL SELECT n FROM v",
        "WITH a AS (SELECT n FROM t), b AS (SELECT n FROM u) SELECT * FROM a JOIN b USING (n)",
        "SELECT /*+ BROADCAST(u) */ t.n FROM t JOIN u USING (n) CLUSTER BY n",
        "FROM t |> WHERE n > 1 |> SELECT n",
    ],
)
def test_these_do(session: "SparkSession", query: str) -> None:
    assert reads_row_by_row(session.sql(query), "t")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT count(*) FROM t", "aggregates"),
        ("SELECT max(n) FROM v GROUP BY n % 2", "aggregates"),
        ("SELECT DISTINCT n FROM t", "DISTINCT"),
        ("SELECT n FROM t UNION SELECT n FROM t", "DISTINCT"),
        ("SELECT row_number() OVER (ORDER BY n) FROM t", "window function"),
        ("SELECT n FROM t LIMIT 2", "LIMIT"),
        ("SELECT n FROM t OFFSET 1", "OFFSET"),
        ("SELECT n FROM t EXCEPT SELECT n FROM u", "EXCEPT"),
        ("SELECT n FROM u INTERSECT SELECT n FROM t", "INTERSECT"),
        ("SELECT n FROM t TABLESAMPLE (50 PERCENT)", "samples"),
        ("SELECT n FROM t UNION ALL SELECT n FROM u", "UNION"),
        ("SELECT * FROM t a JOIN v b ON a.n = b.n", "joins the table with itself"),
        ("SELECT * FROM u LEFT JOIN t ON t.n = u.n", "LeftOuter"),
        ("SELECT * FROM t RIGHT JOIN u ON t.n = u.n", "RightOuter"),
        ("SELECT * FROM t FULL JOIN u ON t.n = u.n", "FullOuter"),
        ("SELECT * FROM u LEFT ANTI JOIN t ON t.n = u.n", "LeftAnti"),
        ("SELECT * FROM u LEFT SEMI JOIN t ON t.n = u.n", "LeftSemi"),
        ("SELECT * FROM u WHERE n IN (SELECT n FROM t)", "subquery"),
        ("SELECT n, (SELECT max(n) FROM v) FROM t", "subquery"),
        ("SELECT * FROM u, LATERAL (SELECT n FROM t WHERE t.n = u.n)", "subquery"),
        ("WITH a AS (SELECT n FROM t) SELECT * FROM a x JOIN a y ON x.n = y.n", "itself"),
        ("WITH a AS (SELECT max(n) AS n FROM t) SELECT * FROM u WHERE n = (SELECT n FROM a)", "aggregates"),
        ("WITH a AS (SELECT n FROM t) SELECT * FROM u WHERE n = (SELECT n FROM a)", "subquery"),
    ],
)
def test_these_do_not(session: "SparkSession", query: str, words: str) -> None:
    with pytest.raises(NotRowByRow, match=words):
        reads_row_by_row(session.sql(query), "t")


@pytest.mark.parametrize("query", ["SELECT count(*) FROM u", "SELECT 1 AS t", "SELECT * FROM u AS t"])
def test_these_do_not_read_it(session: "SparkSession", query: str) -> None:
    assert not reads_row_by_row(session.sql(query), "t")
    assert "t" not in tables_read(session.sql(query))


def test_all_tables_are_found(session: "SparkSession") -> None:
    found = tables_read(session.sql("SELECT * FROM v WHERE n IN (SELECT n FROM u)"))
    assert found == {"v", "t", "u"}
