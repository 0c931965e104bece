"""Streams from and into a database: new rows by a cursor column, each micro-batch written once."""

import json

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.errors import TargetChanged
from spark_runner.connectors.jdbc import sink as sinks
from spark_runner.connectors.jdbc import staging
from spark_runner.connectors.jdbc.sink import JdbcSink
from spark_runner.connectors.options import to_plan, validate
from spark_runner.sql.execution.streaming import MicroBatches
from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run, reader
from tests.servers.databases import PASSWORD, DatabaseServer

COLUMNS = "id BIGINT, at TIMESTAMP, raw BINARY, doc STRING, tags ARRAY<STRING>"
BYTES = {"postgres": "bytea", "mariadb": "longblob"}
MARIADB_ROWS = """INSERT INTO src
    SELECT seq, TIMESTAMP'2026-01-01 00:00:00.5' + INTERVAL seq SECOND, REPEAT('x', 90),
    JSON_OBJECT('a', CONCAT('q"', CHAR(92), ' ', CHAR(10), seq)), JSON_ARRAY('a,"', NULL) FROM seq_"""


def stream(database: DatabaseServer, cursor: str = "id", **more: object) -> str:
    return f"""SET job.mode = 'available-now';
    CREATE TABLE src ({COLUMNS}) {database.options("src", cursor_column=cursor, **more)};
    CREATE TABLE dst ({COLUMNS}) {database.options("dst", create=True)};
    INSERT INTO dst SELECT * FROM src;"""


def put(database: DatabaseServer, low: int, high: int) -> None:
    if database.kind == "mariadb":
        table = "id bigint PRIMARY KEY, at timestamp(6) NULL, raw longblob, doc json, tags json"
        database.run(
            f"SET time_zone = '+00:00'; CREATE TABLE IF NOT EXISTS src ({table});"
            f" {MARIADB_ROWS}{low}_to_{high}"
        )
        return
    database.run(
        "CREATE TABLE IF NOT EXISTS src (id bigint, at timestamptz, raw bytea, doc json, tags text[]);"
        f"""INSERT INTO src SELECT i, timestamptz '2026-01-01 00:00:00.5+00' + i * interval '1 s',
        convert_to(repeat('x', 90), 'UTF8'), json_build_object('a', E'q"\\\\ \\n' || i), ARRAY['a,"', NULL]
        FROM generate_series({low}, {high}) i"""
    )


def same(database: DatabaseServer) -> str:
    """The query for the number of rows that are equal in both tables, and of their ids."""
    equal = {
        "postgresql": "s.tags = d.tags AND s.doc::jsonb = d.doc::jsonb",
        "mariadb": "json_compact(s.tags) = json_compact(d.tags) AND s.doc = d.doc",
    }
    return (
        "SELECT count(*), count(DISTINCT s.id) FROM src s JOIN dst d ON s.id = d.id AND s.at = d.at"
        f" AND s.raw = d.raw AND {equal[database.kind]}"
    )


@pytest.mark.parametrize("cursor", ["id", "at"])
def test_a_stream_reads_each_new_row_once_over_several_runs(
    database: DatabaseServer, run_script: Run, cursor: str
) -> None:
    put(database, 1, 30_000)
    script = stream(database, cursor)
    assert [each["rows"] for each in run_script(script)] == [30_000]
    assert [each["rows"] for each in run_script(script)] == [0]
    put(database, 30_001, 30_003)
    assert [each["rows"] for each in run_script(script)] == [3]
    assert database.run(same(database)) == [["30003", "30003"]]


def test_rows_that_are_deleted_and_come_back_are_not_read_again(
    database: DatabaseServer, run_script: Run
) -> None:
    put(database, 1, 10)
    script = stream(database, "at")
    assert [each["rows"] for each in run_script(script)] == [10]
    database.run("CREATE TABLE kept AS SELECT * FROM src; DELETE FROM src WHERE id > 5;")
    assert [each["rows"] for each in run_script(script)] == [0]  # of an end below the last one
    database.run("DELETE FROM src")
    assert [each["rows"] for each in run_script(script)] == [0]  # of none
    database.run("INSERT INTO src SELECT * FROM kept")
    put(database, 11, 12)
    assert [each["rows"] for each in run_script(script)] == [2]
    assert database.run("SELECT count(*), count(DISTINCT id) FROM dst") == [["12", "12"]]


def test_the_end_of_a_stream_does_not_go_back_while_it_runs(database: DatabaseServer) -> None:
    put(database, 1, 10)
    first = reader(database)
    assert first.initialOffset()["cursor"] is None
    reached = first.latestOffset()
    assert reached["cursor"] == "10"
    for statement in ("DELETE FROM src WHERE id > 5", "DELETE FROM src", "INSERT INTO src (id) VALUES (9)"):
        database.run(statement)
        assert first.latestOffset() == reached
    other = {"cursor": "77", "column": reached["column"].replace("src", "other")}
    later = reader(database, reached=[json.dumps(reached), json.dumps(other), "7"])
    assert later.latestOffset() == reached
    database.run("INSERT INTO src (id) VALUES (11)")
    assert later.latestOffset()["cursor"] == "11"


def test_a_delay_leaves_young_rows_to_a_later_run(database: DatabaseServer, run_script: Run) -> None:
    put(database, 1, 3)
    database.run("INSERT INTO src (id, at) VALUES (4, now())")
    assert [each["rows"] for each in run_script(stream(database, "at", cursor_delay=3600))] == [3]


@pytest.mark.parametrize(
    ("server", "kind", "needed"),
    [
        *[("postgres", kind, "timestamp with time zone") for kind in ("timestamp(3)", "date", "bigint")],
        *[("mariadb", kind, "timestamp") for kind in ("datetime(3)", "date", "bigint")],
    ],
)
def test_a_delay_is_refused_for_a_column_that_is_no_point_in_time(
    request: pytest.FixtureRequest, run_script: Run, server: str, kind: str, needed: str
) -> None:
    database: DatabaseServer = request.getfixturevalue(server)
    database.run(f"CREATE TABLE src (id bigint, at {kind}, raw {BYTES[server]}, doc json, tags text)")
    with pytest.raises(SqlError, match=rf"'cursor_delay' needs a column of type '{needed}': 'at'"):
        run_script(stream(database, "at", cursor_delay=1))


def test_a_micro_batch_that_runs_again_adds_no_row_twice(
    database: DatabaseServer, run_script: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(database, 1, 10)
    write = MicroBatches.write

    def failing(self: MicroBatches, frame: object, batch: int) -> None:
        write(self, frame, batch)  # type: ignore[arg-type]  # a frame
        raise RuntimeError("after the write")

    with monkeypatch.context() as patch:
        patch.setattr(MicroBatches, "write", failing)
        with pytest.raises(SqlError, match="after the write"):
            run_script(stream(database))
    assert database.run("SELECT count(*) FROM dst") == [["10"]]
    run_script(stream(database))
    assert database.run("SELECT count(*) FROM dst") == [["10"]]


def test_a_suspended_driver_does_not_commit_after_a_later_one(
    database: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE t (id int)")
    given = {"url": database.url, "username": database.user, "password": PASSWORD, "table": "t"}
    options = to_plan(validate("jdbc", given))
    frame, fill = jdbc_spark.range(3).selectExpr("CAST(id AS INT) AS id"), staging.fill
    request = WriteRequest("append", Writer("stream-7", 2))

    def suspended(*arguments: object) -> object:
        filled = fill(*arguments)  # type: ignore[arg-type]  # the same ones
        with monkeypatch.context() as patch:
            patch.setattr(sinks, "fill", fill)
            assert JdbcSink().write(frame, options, request).rows == 3  # a later driver meanwhile
        return filled

    monkeypatch.setattr(sinks, "fill", suspended)
    with pytest.raises(TargetChanged, match="another attempt"):
        JdbcSink().write(frame, options, request)
    assert database.run("SELECT count(*) FROM t") == [["3"]]
    assert JdbcSink().write(frame, options, request).rows == 3  # done before
    assert database.run("SELECT count(*) FROM t") == [["3"]]
