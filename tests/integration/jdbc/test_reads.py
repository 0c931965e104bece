"""Reads of real databases: divided, filtered by the database, from a query."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc import partitions
from spark_runner.connectors.jdbc.source import JdbcSource
from spark_runner.connectors.options import to_plan, validate
from tests.servers.databases import PASSWORD, DatabaseServer

ROWS = 3_000


def read(spark: SparkSession, database: DatabaseServer, **options: object) -> DataFrame:
    given = {"url": database.url, "username": database.user, "password": PASSWORD}
    given |= {name: str(value) for name, value in options.items()}
    return JdbcSource().read(spark, to_plan(validate("jdbc", given)), None)


def fill(database: DatabaseServer) -> None:
    values = ", ".join(f"({number}, 'n{number % 7}')" for number in range(ROWS))
    database.run("CREATE TABLE t (id int PRIMARY KEY, name varchar(20))")
    database.run(f"INSERT INTO t VALUES {values}")


def test_a_column_divides_a_read_between_the_bounds_that_the_database_has(
    database: DatabaseServer, jdbc_spark: SparkSession
) -> None:
    fill(database)
    found = read(jdbc_spark, database, table="t", partition_column="id", partitions=3)
    sizes = [len(part) for part in found.rdd.glom().collect()]
    assert len(sizes) == 3
    assert sum(sizes) == ROWS
    assert min(sizes) > ROWS / 4


def test_a_large_table_is_divided_without_a_column(
    database: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database)
    database.run("ANALYZE TABLE t" if database.kind == "mariadb" else "ANALYZE t")
    assert read(jdbc_spark, database, table="t", partitions=4).rdd.getNumPartitions() == 1  # it is small
    monkeypatch.setattr(partitions, "_MIN_PAGES", 4)
    monkeypatch.setattr(partitions, "_MIN_ROWS", 100)
    found = read(jdbc_spark, database, table="t", partitions=4)
    sizes = [len(part) for part in found.rdd.glom().collect()]
    assert len(sizes) == 4
    assert sum(sizes) == ROWS
    assert min(sizes) > ROWS / 8


def test_filters_and_columns_are_computed_by_the_database(
    database: DatabaseServer, jdbc_spark: SparkSession
) -> None:
    fill(database)
    found = read(jdbc_spark, database, table="t").where("id < 5").select("name")
    plan = found._jdf.queryExecution().executedPlan().toString()  # noqa: SLF001 - no public way to the text
    assert "LessThan(id,5)" in plan
    assert PASSWORD not in plan
    assert sorted(row.name for row in found.collect()) == ["n0", "n1", "n2", "n3", "n4"]


def test_a_query_is_run_by_the_database(database: DatabaseServer, jdbc_spark: SparkSession) -> None:
    fill(database)
    found = read(jdbc_spark, database, query="SELECT name, count(*) AS n FROM t WHERE id < 14 GROUP BY name;")
    assert {row.name: row.n for row in found.collect()} == {f"n{number}": 2 for number in range(7)}


def test_a_missing_driver_is_named(jdbc_spark: SparkSession) -> None:
    options = to_plan(validate("jdbc", {"url": "jdbc:sqlserver://h", "table": "t", "driver": "com.x.Driver"}))
    with pytest.raises(ConnectorError, match="no JDBC driver for 'jdbc:sqlserver://h:0/'"):
        JdbcSource().read(jdbc_spark, options, None)
