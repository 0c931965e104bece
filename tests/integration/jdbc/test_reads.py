"""Reads of real databases: divided, filtered by the database, from a query."""

from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.jdbc import partitions
from spark_runner.connectors.jdbc.source import JdbcSource
from spark_runner.connectors.options import to_plan, validate
from tests.servers.databases import PASSWORD, DatabaseServer, local_pgbouncer

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
    monkeypatch.setattr(partitions, "_MIN_BYTES", 32 * 1024)
    monkeypatch.setattr(partitions, "_MIN_ROWS", 100)
    found = read(jdbc_spark, database, table="t", partitions=4)
    sizes = [len(part) for part in found.rdd.glom().collect()]
    assert len(sizes) == 4
    assert sum(sizes) == ROWS
    assert min(sizes) > ROWS / 8


def test_texts_of_a_fixed_length_are_as_the_database_gives_them(
    mariadb: DatabaseServer, jdbc_spark: SparkSession
) -> None:
    mariadb.run("CREATE TABLE t (id int, code char(5), state enum('a', 'bcd'))")
    mariadb.run("INSERT INTO t VALUES (1, 'ab', 'a')")
    found = read(jdbc_spark, mariadb, table="t").where("code = 'ab' AND state = 'a'")
    assert [tuple(row) for row in found.collect()] == [(1, "ab", "a")]


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("bigint", "number"),
        ("uuid", "md5(number::text)::uuid"),
        ("text", r"""format('%s''"\\%s', number % 7, number)"""),
        ("numeric(20, 2)", "number / 4.0"),
        ("timestamptz", "to_timestamp(number)"),
        ('varchar(9) COLLATE "C"', "'é' || number"),
    ],
)
def test_statistics_divide_a_key_of_any_type_into_equal_parts(
    postgres: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str, key: str
) -> None:
    postgres.run(f'CREATE TABLE t ("the ""key" {kind} PRIMARY KEY, number int)')
    postgres.run(f"INSERT INTO t SELECT {key}, number FROM generate_series(1, {ROWS}) AS number; ANALYZE t")
    monkeypatch.setattr(partitions, "_MIN_BYTES", 1)
    found = read(jdbc_spark, postgres, table="t", partitions=4).select("number")
    sizes = [len(part) for part in found.rdd.glom().collect()]
    assert len(sizes) == 4
    assert min(sizes) > ROWS / 5
    assert sorted(row.number for row in found.collect()) == list(range(1, ROWS + 1))


def test_a_key_of_integers_without_statistics_is_divided_by_its_bounds(
    postgres: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.run("CREATE TABLE t (id int PRIMARY KEY, name text) WITH (autovacuum_enabled = off)")
    postgres.run(f"INSERT INTO t SELECT id, 'n' FROM generate_series(1, {ROWS}) AS id")
    monkeypatch.setattr(partitions, "_MIN_BYTES", 1)
    found = read(jdbc_spark, postgres, table="t", partitions=4)
    sizes = [len(part) for part in found.rdd.glom().collect()]
    assert (len(sizes), sum(sizes)) == (4, ROWS)
    assert min(sizes) > ROWS / 5


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE t (id int, name text)",
        "CREATE TABLE t (id int, name text, PRIMARY KEY (id, name))",
        "CREATE TABLE t (id text PRIMARY KEY, name text) WITH (autovacuum_enabled = off)",
        "CREATE TABLE u (id int PRIMARY KEY, name text); CREATE VIEW t AS SELECT * FROM u",
    ],
)
def test_a_table_without_a_key_that_divides_it_is_read_over_one_connection(
    postgres: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    postgres.run(table)
    postgres.run(f"INSERT INTO t SELECT id, 'n' FROM generate_series(1, {ROWS}) AS id")
    monkeypatch.setattr(partitions, "_MIN_BYTES", 1)
    found = read(jdbc_spark, postgres, table="t", partitions=4)
    assert [len(part) for part in found.rdd.glom().collect()] == [ROWS]


def test_rows_that_move_within_their_table_while_it_is_read_are_read_once(
    postgres: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.run("CREATE TABLE t (id int PRIMARY KEY, name text)")
    postgres.run(f"INSERT INTO t SELECT id, 'old' FROM generate_series(-{ROWS}, {ROWS}) AS id")
    postgres.run("DELETE FROM t WHERE id <= 0")
    postgres.run("VACUUM ANALYZE t")  # there is room before the other rows now
    monkeypatch.setattr(partitions, "_MIN_BYTES", 1)
    parts = read(jdbc_spark, postgres, table="t", partitions=2).rdd

    def ids(part: int) -> list[int]:
        return jdbc_spark.sparkContext.runJob(parts, lambda rows: [row.id for row in rows], [part])

    first = ids(0)
    moved = f"UPDATE t SET name = 'new' WHERE id > {ROWS // 2} RETURNING ctid < '(10,0)'"
    assert ["t"] in postgres.run(moved)
    assert sorted(first + ids(1)) == list(range(1, ROWS + 1))


def test_a_read_has_a_named_statement_unless_a_pooler_may_give_its_server_to_others(
    postgres: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(postgres)
    postgres.run("CREATE VIEW v AS SELECT (SELECT count(*) FROM pg_prepared_statements) AS named")
    monkeypatch.setattr(partitions, "_MIN_BYTES", 1)

    def named(url: str, port: int) -> int:
        at = replace(postgres, port=port, database=f"{postgres.database}{url}")
        for _ in range(3):  # so that its connections have had other clients
            assert read(jdbc_spark, at, table="t", partitions=4).count() == ROWS
        return int(read(jdbc_spark, at, table="v").collect()[0].named)

    assert named("", postgres.port) == 1
    assert named("?prepareThreshold=0", postgres.port) == 0
    with local_pgbouncer(postgres.port) as port:
        assert named("", port) == 0


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
