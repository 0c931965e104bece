"""Rows that a database refuses go to the quarantine if the script has a limit; the others are written."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.jdbc import sieve, sink
from spark_runner.connectors.jdbc.record import WriteRecord
from spark_runner.sql.execution.quarantine import Quarantine
from spark_runner.sql.execution.streaming import MicroBatches
from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run
from tests.servers.databases import DatabaseServer

CHECKED = "CREATE TABLE t (id int {key}, name varchar(8) NOT NULL, amount int CHECK (amount >= 0))"
COLUMNS = "id BIGINT, name STRING, amount BIGINT"
GIVEN = """SELECT CASE WHEN id = 7 THEN 5000000000 ELSE id END AS id,
  CASE id % 250 WHEN 1 THEN 'much too long' WHEN 2 THEN NULL ELSE concat('n', id) END AS name,
  CASE WHEN id = 500 THEN -1 ELSE id END AS amount FROM range(0, 1000, 1, 2)"""
BAD = {1, 251, 501, 751, 2, 252, 502, 752, 500}  # and one whose id is out of range
QUARANTINE = "CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');\nSET job.quarantine = bad;\n"


def script(database: DatabaseServer, *, keyed: bool, limit: str = "rows = 10", into: str = "INTO") -> str:
    key = ", PRIMARY KEY (id) NOT ENFORCED" if keyed else ""
    return f"""SET job.error.limit.{limit};
    {QUARANTINE} CREATE TABLE t ({COLUMNS}{key}) {database.options("t")};
    INSERT {into} t {GIVEN};"""


def aside(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
    rows = spark.read.json(f"{folder}/bad").collect()
    assert {(row.rule, row.form) for row in rows} <= {("target", "json")}
    return [{**json.loads(row.record), "reason": row.reason} for row in rows]


def kept(database: DatabaseServer) -> list[list[str]]:
    return database.run("SELECT count(*), count(DISTINCT id), sum(id) FROM t")


GOOD = [["990", "990", str(sum(set(range(1000)) - BAD - {7}))]]


@pytest.mark.parametrize("keyed", [False, True])
def test_rejected_rows_are_set_aside_and_the_others_written(
    database: DatabaseServer, jdbc_spark: SparkSession, run_script: Run, tmp_path: Path, *, keyed: bool
) -> None:
    database.run(CHECKED.format(key="PRIMARY KEY"))
    (result,) = run_script(script(database, keyed=keyed))
    assert result["rows"] == 990
    assert kept(database) == GOOD
    found = aside(jdbc_spark, tmp_path)
    assert {row["id"] for row in found} == BAD | {5_000_000_000}
    assert len(found) == 10
    assert all(row["amount"] is not None for row in found)
    reasons = {row["id"]: row["reason"] for row in found}
    long, missing, checked, out = (reasons[each] for each in (1, 2, 500, 5_000_000_000))
    assert long.startswith("SQLSTATE 22001: ")
    assert out.startswith("SQLSTATE 22003: ")
    assert missing.startswith("SQLSTATE 23")
    assert checked.startswith("SQLSTATE 23")
    left = database.run(
        "SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'orchestrator_staging%'"
        f" AND '{database.database}' IN (table_schema, table_catalog)"
    )
    assert left == [["0"]]


def test_more_rows_than_the_limit_fail_the_write_as_a_whole(
    database: DatabaseServer, run_script: Run
) -> None:
    database.run(CHECKED.format(key="PRIMARY KEY") + "; INSERT INTO t VALUES (5000, 'old', 1)")
    for limit, words in (("rows = 9", "refused more than 9 rows of this write"), ("rows = 0", "refused: ")):
        with pytest.raises(SqlError, match=words):
            run_script(script(database, keyed=False, limit=limit, into="OVERWRITE"))
        assert kept(database) == [["1", "1", "5000"]]


def test_an_overwrite_replaces_the_old_rows_by_those_that_fit(
    mariadb: DatabaseServer, run_script: Run
) -> None:
    mariadb.run(CHECKED.format(key="") + "; INSERT INTO t VALUES (5000, 'old', 1)")
    (result,) = run_script(script(mariadb, keyed=False, limit="percent = 1", into="OVERWRITE"))
    assert result["rows"] == 990
    assert kept(mariadb) == GOOD


def test_a_write_without_refused_rows_is_tried_once(
    mariadb: DatabaseServer, run_script: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    mariadb.run("CREATE TABLE t (id int)")
    monkeypatch.setattr(sink, "move_fitting", None)
    text = f"""SET job.error.limit.rows = 10; {QUARANTINE}
    CREATE TABLE t (id INT) {mariadb.options("t")}; INSERT INTO t VALUES (1), (2);"""
    assert [each["rows"] for each in run_script(text)] == [2]
    assert mariadb.run("SELECT count(*) FROM t") == [["2"]]


class Killed(Exception):
    """Stands for the death of a driver."""


def die(*_: object, **__: object) -> None:
    raise Killed


def test_an_attempt_after_the_commit_reports_the_same_rejected_rows(
    database: DatabaseServer,
    jdbc_spark: SparkSession,
    run_script: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database.run(CHECKED.format(key=""))
    text, key = script(database, keyed=False), uuid.uuid4().hex
    with monkeypatch.context() as patch:
        patch.setattr(Quarantine, "rejected", die)  # after the commit, before the quarantine has a row
        with pytest.raises(Killed):
            run_script(text, key)
    assert kept(database) == GOOD
    assert not (tmp_path / "bad").exists()
    for attempt in (2, 3):
        assert [each["rows"] for each in run_script(text, key, attempt)] == [990]
        assert kept(database) == GOOD
        assert len(aside(jdbc_spark, tmp_path)) == 10


def test_an_attempt_that_died_before_the_commit_is_repeated_as_a_whole(
    mariadb: DatabaseServer,
    jdbc_spark: SparkSession,
    run_script: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mariadb.run(CHECKED.format(key=""))
    text, key = script(mariadb, keyed=False), uuid.uuid4().hex
    with monkeypatch.context() as patch:
        patch.setattr(WriteRecord, "reject", die)
        with pytest.raises(Killed):
            run_script(text, key)
    assert kept(mariadb)[0][0] == "0"
    assert mariadb.run("SELECT count(*) FROM orchestrator_rejected") == [["0"]]
    assert [each["rows"] for each in run_script(text, key, 2)] == [990]
    assert kept(mariadb) == GOOD
    assert len(aside(jdbc_spark, tmp_path)) == 10


def test_a_micro_batch_that_runs_again_rejects_the_same_rows(
    postgres: DatabaseServer,
    jdbc_spark: SparkSession,
    run_script: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    postgres.run(CHECKED.format(key=""))
    jdbc_spark.sql(GIVEN).write.parquet(f"{tmp_path}/src")
    text = f"""SET job.mode = 'available-now'; SET job.error.limit.percent = 1; {QUARANTINE}
    CREATE TABLE src ({COLUMNS}) USING parquet OPTIONS (path '{tmp_path}/src');
    CREATE TABLE t ({COLUMNS}) {postgres.options("t")}; INSERT INTO t SELECT * FROM src;"""
    write = MicroBatches.write

    def failing(self: MicroBatches, frame: object, batch: int) -> None:
        write(self, frame, batch)  # type: ignore[arg-type]  # a frame
        raise Killed

    key = uuid.uuid4().hex
    with monkeypatch.context() as patch:
        patch.setattr(MicroBatches, "write", failing)
        with pytest.raises(SqlError, match="Killed"):
            run_script(text, key)
    run_script(text, key, 2)
    assert kept(postgres) == GOOD
    assert len(aside(jdbc_spark, tmp_path)) == 10


def test_the_last_row_of_a_key_that_fits_wins(
    database: DatabaseServer, jdbc_spark: SparkSession, run_script: Run, tmp_path: Path
) -> None:
    database.run(CHECKED.format(key="PRIMARY KEY") + "; INSERT INTO t VALUES (4, 'old', 1)")
    run_script(
        f"""SET job.error.limit.rows = 10; {QUARANTINE}
        CREATE TABLE t ({COLUMNS}, gone BOOLEAN, PRIMARY KEY (id) NOT ENFORCED)
        {database.options("t", delete_column="gone")};
        INSERT INTO t SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'a', 1, false), (2, 'b', 2, false),
        (3, NULL, 3, false), (1, 'c', 5, false), (4, 'x', 1, true), (2, 'z', -1, false), (5, 'e', 5, NULL),
        (5, 'x', 5, true);"""
    )
    assert database.run("SELECT id, name FROM t ORDER BY id") == [["1", "c"], ["2", "b"]]
    assert {row["id"] for row in aside(jdbc_spark, tmp_path)} == {2, 3}


TYPES = (
    "id INT, price DECIMAL(38,10), half FLOAT, whole DOUBLE, ok BOOLEAN, text STRING, raw BINARY,"
    " day DATE, at TIMESTAMP, wall TIMESTAMP_NTZ, doc STRUCT<a: INT, b: ARRAY<STRING>>"
)
VALUES = """SELECT CAST(id AS INT), CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38,10)) - id,
CAST(0.1 AS FLOAT), 1e-300 * id, id = 1, concat('tab\\t line\\n back\\\\ \\\\N é 漢 😀', id), unhex('00FF41'),
DATE'1970-01-01', timestamp_micros(1792888200123456 + id * 3600000000), TIMESTAMP_NTZ'2026-03-29 02:30:00',
named_struct('a', CAST(id AS INT), 'b', array('x,y', NULL)) FROM range(4)"""


def test_values_are_the_same_whether_another_row_is_rejected_or_not(
    database: DatabaseServer, run_script: Run
) -> None:
    make = f"CREATE TABLE a ({TYPES}) {database.options('a', create=True)}; INSERT INTO a {VALUES};"
    run_script(f"SET spark.sql.session.timeZone = 'Europe/Berlin'; {make}")
    like = "(LIKE a)" if database.kind == "postgresql" else "LIKE a"
    database.run(f"CREATE TABLE b {like}; ALTER TABLE b ADD CONSTRAINT low CHECK (id < 3)")
    results = run_script(
        f"""SET spark.sql.session.timeZone = 'Europe/Berlin'; SET job.error.limit.rows = 1; {QUARANTINE}
        CREATE TABLE b ({TYPES}) {database.options("b")}; INSERT INTO b {VALUES};"""
    )
    assert [each["rows"] for each in results] == [3]
    names = "id, price, half, whole, ok, text, raw, day, at, wall, doc"
    assert database.run(f"SELECT count(*) FROM a JOIN b USING ({names})") == [["3"]]


def test_a_text_that_postgresql_cannot_hold_is_rejected(
    postgres: DatabaseServer, jdbc_spark: SparkSession, run_script: Run, tmp_path: Path
) -> None:
    postgres.run("CREATE TABLE t (id int, uid uuid, name text)")
    results = run_script(
        f"""SET job.error.limit.rows = 2; {QUARANTINE}
        CREATE TABLE t (id INT, uid STRING, name STRING) {postgres.options("t")};
        INSERT INTO t SELECT CAST(id AS INT), CASE id WHEN 1 THEN 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
        WHEN 2 THEN 'no uuid' END, CASE WHEN id = 3 THEN concat('c', char(0)) ELSE 'a' END
        FROM range(1, 4);"""
    )
    assert [each["rows"] for each in results] == [1]
    found = {row["id"]: row for row in aside(jdbc_spark, tmp_path)}
    assert found[2]["reason"].startswith("SQLSTATE 22P02: ")
    assert found[3]["reason"].startswith("SQLSTATE 22021: ")
    assert found[3]["name"] == "c\0"


def test_a_row_that_is_refused_without_copy_is_rejected_by_its_constraint(
    postgres: DatabaseServer, run_script: Run
) -> None:
    postgres.run(CHECKED.format(key=""))
    results = run_script(
        f"""SET job.error.limit.rows = 2; {QUARANTINE}
        CREATE TABLE t ({COLUMNS}) {postgres.options("t", copy_rows="false")};
        INSERT INTO t VALUES (1, 'a', 1), (2, NULL, 2), (3, 'c', -3);"""
    )
    assert [each["rows"] for each in results] == [1]
    assert postgres.run("SELECT id FROM t") == [["1"]]


def test_the_number_of_statements_is_bounded(
    database: DatabaseServer, run_script: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE t (id int NOT NULL)")
    tried = list[object]()
    moved = sieve._moved  # noqa: SLF001 - to count its calls

    def counted(*given: Any) -> Any:
        tried.append(given)
        return moved(*given)

    monkeypatch.setattr(sieve, "_moved", counted)
    results = run_script(
        f"""SET job.error.limit.rows = 4; {QUARANTINE}
        CREATE TABLE t (id INT) {database.options("t")};
        INSERT INTO t SELECT CASE WHEN id % 250 != 0 THEN CAST(id AS INT) END FROM range(1000);"""
    )
    assert [each["rows"] for each in results] == [996]
    assert len(tried) <= 4 * 2 * 11


def test_rejected_rows_are_kept_as_long_as_their_write_is_recorded(
    postgres: DatabaseServer, run_script: Run
) -> None:
    postgres.run("CREATE TABLE t (id int NOT NULL)")
    text = f"""SET job.error.limit.rows = 1; {QUARANTINE}
    CREATE TABLE t (id INT) {postgres.options("t")}; INSERT INTO t VALUES (1), (NULL);"""
    numbers = "SELECT count(*), count(DISTINCT owner) FROM orchestrator_rejected"
    run_script(text)
    run_script(text)
    assert postgres.run(numbers) == [["2", "2"]]
    postgres.run("DELETE FROM orchestrator_writes")
    run_script(text)
    assert postgres.run(numbers) == [["1", "1"]]
