"""Drivers that are killed while they write: each row is in its table once, after the attempt that ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sampling import chance, times
from tests.servers.databases import DatabaseServer, driver_jars

pytestmark = [pytest.mark.campaign, pytest.mark.drawn("kills of writers"), pytest.mark.timeout(3600)]

ROWS = 40_000
BAD = 40  # rows that the table refuses


def attempt(script: str, folder: Path, number: int, seconds: float) -> int:
    jars = ",".join(map(str, driver_jars()))
    command = [sys.executable, "-m", "tests.jdbc_driver", str(folder), str(number), str(seconds), jars]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        command, input=script.encode(), env=environment, timeout=300, check=False, capture_output=True
    )
    assert done.returncode in {0, -9}, done.stderr.decode()[-2000:]
    return done.returncode


def test_rows_are_written_once_whenever_drivers_are_killed(database: DatabaseServer, tmp_path: Path) -> None:
    database.run(
        "CREATE TABLE added (id int, name varchar(20));"
        "CREATE TABLE kept (id int PRIMARY KEY, name varchar(20))"
    )
    database.run("INSERT INTO kept VALUES (1, 'old'), (-1, 'other')")
    script = f"""CREATE TABLE added (id INT, name STRING) {database.options("added")};
    CREATE TABLE kept (id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED) {database.options("kept")};
    CREATE VIEW given AS SELECT CAST(id AS INT) AS id, concat('n', id) AS name FROM range(0, {ROWS}, 1, 4);
    INSERT INTO added SELECT * FROM given;
    INSERT INTO kept SELECT * FROM given;
    INSERT INTO added SELECT id + {ROWS}, name FROM given;"""
    random, kills, number = chance(f"jdbc kills of {database.kind}"), times(1, 25), 0
    while kills:
        number, kills = number + 1, kills - 1
        if attempt(script, tmp_path, number, random.uniform(0.01, 4)) == 0:
            break  # it ended before its death
    assert attempt(script, tmp_path, number + 1, 0) == 0
    added = database.run("SELECT count(*), count(DISTINCT id), sum(id) FROM added")
    assert added == [[str(2 * ROWS), str(2 * ROWS), str(sum(range(2 * ROWS)))]]
    kept = database.run("SELECT count(*), sum(id), min(name) FROM kept")
    assert kept == [[str(ROWS + 1), str(sum(range(ROWS)) - 1), "n0"]]
    left = database.run(
        "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'orchestrator_staging%'"
        f" AND '{database.database}' IN (table_schema, table_catalog)"
    )
    assert left == [["0"]]


def test_rejected_rows_are_reported_once_whenever_drivers_are_killed(
    database: DatabaseServer, tmp_path: Path
) -> None:
    database.run("CREATE TABLE t (id int NOT NULL, name varchar(6) NOT NULL)")
    script = f"""SET job.error.limit.rows = {2 * BAD};
    CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');
    SET job.quarantine = bad;
    CREATE TABLE t (id INT, name STRING) {database.options("t")};
    CREATE VIEW given AS SELECT CAST(id AS INT) AS id,
      CASE WHEN id % {ROWS // BAD} != 0 THEN concat('n', id) WHEN id % {2 * ROWS // BAD} = 0
      THEN 'too long' END AS name
      FROM range(0, {ROWS}, 1, 4);
    INSERT INTO t SELECT * FROM given;
    INSERT INTO t SELECT id + {ROWS}, name FROM given;"""
    random, kills, number = chance(f"jdbc kills with rejected rows of {database.kind}"), times(1, 25), 0
    while kills:
        number, kills = number + 1, kills - 1
        if attempt(script, tmp_path, number, random.uniform(0.01, 12)) == 0:
            break  # it ended before its death
    assert attempt(script, tmp_path, number + 1, 0) == 0
    refused = [each for each in range(2 * ROWS) if each % (ROWS // BAD) == 0]
    found = database.run("SELECT count(*), count(DISTINCT id), sum(id) FROM t")
    number_good = str(2 * (ROWS - BAD))
    assert found == [[number_good, number_good, str(sum(range(2 * ROWS)) - sum(refused))]]
    lines = [
        line for file in (tmp_path / "bad").glob("part-*") for line in file.read_text("utf-8").splitlines()
    ]
    assert sorted(json.loads(json.loads(line)["record"])["id"] for line in lines) == refused
