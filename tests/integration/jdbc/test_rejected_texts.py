"""Rejected rows whose texts a database cannot keep or transfer as they are."""

import json
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

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
