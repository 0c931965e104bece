"""Rejected rows whose texts a database cannot keep or transfer as they are."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run
from tests.servers.databases import DatabaseServer

QUARANTINE = "CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad'); SET job.quarantine = bad;"


def test_characters_that_the_database_does_not_have_are_kept_in_the_quarantine(
    postgres: DatabaseServer, jdbc_spark: SparkSession, run_script: Run, tmp_path: Path
) -> None:
    name = f"{postgres.database}_latin"
    postgres.run(f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    latin = replace(postgres, database=name)
    latin.run(r"CREATE TABLE t (id int, name text CHECK (name <> U&'n\00e9'))")
    results = run_script(
        f"""SET job.error.limit.rows = 2; {QUARANTINE}
        CREATE TABLE t (id INT, name STRING, more STRING) {latin.options("t", new_columns="ignore")};
        INSERT INTO t VALUES (1, 'é', '漢'), (2, '漢 😀', 'b'), (3, 'né', '漢');"""
    )
    assert [each["rows"] for each in results] == [1]
    assert latin.run("SELECT id, ascii(name), length(name) FROM t") == [["1", str(ord("é")), "1"]]
    rows = jdbc_spark.read.json(f"{tmp_path}/bad").collect()
    found = {each["id"]: each for each in (json.loads(row.record) for row in rows)}
    assert found == {
        2: {"id": 2, "name": "漢 😀", "more": "b"},
        3: {"id": 3, "name": "né", "more": "漢"},
    }


def test_a_value_that_only_copy_can_set_aside_is_an_error_that_says_so(
    postgres: DatabaseServer, run_script: Run
) -> None:
    postgres.run("CREATE TABLE t (id int, uid uuid)")
    plain = postgres.options("t")
    other = plain.replace(postgres.database, f"{postgres.database}?socketTimeout=60")
    for options in (postgres.options("t", copy_rows="false"), other):
        with pytest.raises(SqlError, match="such a row is set aside by COPY alone"):
            run_script(
                f"""SET job.error.limit.rows = 1; {QUARANTINE} CREATE TABLE t (id INT, uid STRING) {options};
                INSERT INTO t VALUES (1, NULL), (2, 'none');"""
            )
    assert postgres.run("SELECT count(*) FROM t") == [["0"]]


def test_a_row_larger_than_a_packet_is_an_error_that_names_the_setting(
    mariadb: DatabaseServer, run_script: Run
) -> None:
    mariadb.run("CREATE TABLE t (id int CHECK (id > 0), doc longtext)")
    with pytest.raises(
        SqlError, match=r"set max_allowed_packet of the server to more than twice the size of the largest row"
    ):
        run_script(
            f"""SET job.error.limit.rows = 1; {QUARANTINE}
            CREATE TABLE t (id INT, doc STRING) {mariadb.options("t")};
            INSERT INTO t VALUES (0, 'a'), (1, repeat('x', 9000000));"""
        )
    assert mariadb.run("SELECT count(*) FROM t") == [["0"]]
