"""Streams from and into a database: new rows by a cursor column, each micro-batch written once."""

import json

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.errors import TargetChanged
from spark_runner.connectors.jdbc import sink as sinks
from spark_runner.connectors.jdbc import staging
from spark_runner.connectors.jdbc.cursor import CursorReader
from spark_runner.connectors.jdbc.sink import JdbcSink
from spark_runner.connectors.options import to_plan, validate
from spark_runner.sql.execution.streaming import MicroBatches
from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run
from tests.servers.databases import PASSWORD, DatabaseServer

COLUMNS = "id BIGINT, at TIMESTAMP, raw BINARY, doc STRING, tags ARRAY<STRING>"


def stream(database: DatabaseServer, cursor: str = "id", **more: object) -> str:
    return f"""SET job.mode = 'available-now';
    CREATE TABLE src ({COLUMNS}) {database.options("src", cursor_column=cursor, **more)};
    CREATE TABLE dst ({COLUMNS}) {database.options("dst", create=True)};
    INSERT INTO dst SELECT * FROM src;"""


def put(database: DatabaseServer, low: int, high: int) -> None:
    database.run(
        "CREATE TABLE IF NOT EXISTS src (id bigint, at timestamptz, raw bytea, doc json, tags text[]);"
        f"""INSERT INTO src SELECT i, timestamptz '2026-01-01 00:00:00.5+00' + i * interval '1 s',
        convert_to(repeat('x', 90), 'UTF8'), json_build_object('a', E'q"\\\\ \\n' || i), ARRAY['a,"', NULL]
        FROM generate_series({low}, {high}) i"""
    )


SAME = (
    "SELECT count(*), count(DISTINCT s.id) FROM src s JOIN dst d USING (id, at, raw, tags)"
    " WHERE s.doc::jsonb = d.doc::jsonb"
)


@pytest.mark.parametrize("cursor", ["id", "at"])
def test_a_stream_reads_each_new_row_once_over_several_runs(
    postgres: DatabaseServer, run_script: Run, cursor: str
) -> None:
    put(postgres, 1, 30_000)
    script = stream(postgres, cursor)
    assert [each["rows"] for each in run_script(script)] == [30_000]
    assert [each["rows"] for each in run_script(script)] == [0]
    put(postgres, 30_001, 30_003)
    assert [each["rows"] for each in run_script(script)] == [3]
    assert postgres.run(SAME) == [["30003", "30003"]]


def test_rows_that_are_deleted_and_come_back_are_not_read_again(
    postgres: DatabaseServer, run_script: Run
) -> None:
    put(postgres, 1, 10)
    script = stream(postgres, "at")
    assert [each["rows"] for each in run_script(script)] == [10]
    postgres.run("CREATE TABLE kept AS SELECT * FROM src; DELETE FROM src WHERE id > 5;")
    assert [each["rows"] for each in run_script(script)] == [0]  # of an end below the last one
    postgres.run("DELETE FROM src")
    assert [each["rows"] for each in run_script(script)] == [0]  # of none
    postgres.run("INSERT INTO src SELECT * FROM kept")
    put(postgres, 11, 12)
    assert [each["rows"] for each in run_script(script)] == [2]
    assert postgres.run("SELECT count(*), count(DISTINCT id) FROM dst") == [["12", "12"]]


def test_the_end_of_a_stream_does_not_go_back_while_it_runs(postgres: DatabaseServer) -> None:
    put(postgres, 1, 10)
    given = {"url": postgres.url, "username": postgres.user, "password": PASSWORD, "table": "src"}
    options = to_plan(validate("jdbc", given | {"cursor_column": "id"})) | {"columns": ["id"], "binary": []}
    reader = CursorReader(options)
    assert reader.initialOffset()["cursor"] is None
    reached = reader.latestOffset()
    assert reached["cursor"] == "10"
    for statement in ("DELETE FROM src WHERE id > 5", "DELETE FROM src", "INSERT INTO src (id) VALUES (9)"):
        postgres.run(statement)
        assert reader.latestOffset() == reached
    other = {"cursor": "77", "column": reached["column"].replace("src", "other")}
    later = CursorReader(options | {"reached": [json.dumps(reached), json.dumps(other), "7"]})
    assert later.latestOffset() == reached
    postgres.run("INSERT INTO src (id) VALUES (11)")
    assert later.latestOffset()["cursor"] == "11"


def test_a_delay_leaves_young_rows_to_a_later_run(postgres: DatabaseServer, run_script: Run) -> None:
    put(postgres, 1, 3)
    postgres.run("INSERT INTO src (id, at) VALUES (4, now())")
    assert [each["rows"] for each in run_script(stream(postgres, "at", cursor_delay=3600))] == [3]


@pytest.mark.parametrize("kind", ["timestamp(3)", "date", "bigint"])
def test_a_delay_is_refused_for_a_column_that_is_no_point_in_time(
    postgres: DatabaseServer, run_script: Run, kind: str
) -> None:
    postgres.run(f"CREATE TABLE src (id bigint, at {kind}, raw bytea, doc json, tags text[])")
    with pytest.raises(SqlError, match=r"'cursor_delay' needs a column of .* with time zone': 'at'"):
        run_script(stream(postgres, "at", cursor_delay=1))


def test_a_micro_batch_that_runs_again_adds_no_row_twice(
    postgres: DatabaseServer, run_script: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(postgres, 1, 10)
    write = MicroBatches.write

    def failing(self: MicroBatches, frame: object, batch: int) -> None:
        write(self, frame, batch)  # type: ignore[arg-type]  # a frame
        raise RuntimeError("after the write")

    with monkeypatch.context() as patch:
        patch.setattr(MicroBatches, "write", failing)
        with pytest.raises(SqlError, match="after the write"):
            run_script(stream(postgres))
    assert postgres.run("SELECT count(*) FROM dst") == [["10"]]
    run_script(stream(postgres))
    assert postgres.run("SELECT count(*) FROM dst") == [["10"]]


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
