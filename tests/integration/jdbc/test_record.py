"""The record of writes: it stays small, and is a fence for writers that come back."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.errors import TargetChanged
from spark_runner.connectors.jdbc import mysql, record, staging
from spark_runner.connectors.jdbc import sink as sinks
from spark_runner.connectors.jdbc.database import Connection, Database
from spark_runner.connectors.jdbc.failures import DatabaseBroke, DatabaseBusy
from spark_runner.connectors.jdbc.record import WriteRecord
from spark_runner.connectors.jdbc.sink import JdbcSink
from spark_runner.connectors.jdbc.wire import Login, Wire
from spark_runner.connectors.options import to_plan, validate
from tests.servers.databases import PASSWORD, DatabaseServer

Write = Callable[..., int]


@pytest.fixture
def write(database: DatabaseServer, jdbc_spark: SparkSession) -> Write:
    """Writes three rows into the table `t`, as a writer of this key in a process of its own."""
    return writing(database, jdbc_spark)


def writing(database: DatabaseServer, spark: SparkSession) -> Write:
    database.run("CREATE TABLE t (id int)")

    def write(key: str, attempt: int = 1, mode: str = "append", first: int = 0, **more: str) -> int:
        frame = spark.range(first, first + 3, 1, 1).selectExpr("CAST(id AS INT) AS id")
        request = WriteRequest(mode, Writer(key, attempt))
        return JdbcSink().write(frame, options_of(database, **more), request).rows

    return write


def options_of(database: DatabaseServer, **more: str) -> dict[str, Any]:
    given = {"url": database.url, "username": database.user, "password": PASSWORD, "table": "t"}
    return to_plan(validate("jdbc", given | more))


def staging_tables(database: DatabaseServer) -> list[str]:
    found = database.run(
        "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'orchestrator_staging%'"
        f" AND '{database.database}' IN (table_schema, table_catalog)"
    )
    return [name for (name,) in found]


def backdate(database: DatabaseServer, days: int, key: str) -> None:
    database.run(
        f"UPDATE orchestrator_writes SET started_at = started_at - INTERVAL '{days}' DAY,"
        f" committed_at = committed_at - INTERVAL '{days}' DAY WHERE run_key = '{key}'"
    )


def keys(database: DatabaseServer) -> list[str]:
    return [key for (key,) in database.run("SELECT run_key FROM orchestrator_writes ORDER BY run_key")]


def test_a_stream_has_one_row_whatever_the_number_of_its_micro_batches(
    database: DatabaseServer, write: Write
) -> None:
    for batch in range(5):
        write(f"stream-{batch}", 2)
    assert database.run("SELECT run_key, batch FROM orchestrator_writes") == [["stream", "4"]]
    write("stream-4", 2)  # its driver died before Spark had counted the batch
    assert database.run("SELECT count(*) FROM t") == [["15"]]


def test_a_driver_that_comes_back_with_an_earlier_micro_batch_adds_nothing(
    database: DatabaseServer, write: Write
) -> None:
    write("stream-7", 2)
    write("stream-8", 2)
    with pytest.raises(TargetChanged, match="a later micro-batch"):
        write("stream-7", 2)
    assert database.run("SELECT count(*) FROM t") == [["6"]]


def test_rows_of_writers_that_do_not_come_back_are_deleted(database: DatabaseServer, write: Write) -> None:
    ages = {"run a": 29, "run b": 31, "stream c-1": 364, "stream d-1": 366}
    for key, days in ages.items():
        write(key)
        backdate(database, days, key.removesuffix("-1"))
    write("now")
    assert keys(database) == ["now", "run a", "stream c"]
    write("run a", 2)  # which has happened
    assert database.run("SELECT count(*) FROM t") == [["15"]]


@contextlib.contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> Iterator[None]:
    """Writes die behind the fill of their staging table, and remove nothing."""

    def die(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(sinks, "fill", die)
        patch.setattr(WriteRecord, "drop", lambda *_: None)
        yield


def test_writes_without_an_end_are_given_up_with_their_staging_tables(
    database: DatabaseServer, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, days in (("dead", 8), ("slow", 6)):
        with failing(monkeypatch, RuntimeError("killed")), pytest.raises(RuntimeError, match="killed"):
            write(key)
        backdate(database, days, key)
    (slow,) = database.run("SELECT staging FROM orchestrator_writes WHERE run_key = 'slow'")
    assert len(staging_tables(database)) == 2
    write("now")
    assert keys(database) == ["now", "slow"]
    assert staging_tables(database) == slow


def test_a_write_whose_row_was_deleted_cannot_commit(
    database: DatabaseServer, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = staging.fill

    def forgotten(*given: Any) -> Any:
        database.run("DELETE FROM orchestrator_writes")
        return fill(*given)

    monkeypatch.setattr(sinks, "fill", forgotten)
    with pytest.raises(TargetChanged, match="t' was not changed"):
        write("run")
    assert database.run("SELECT count(*) FROM t") == [["0"]]


def test_two_drivers_that_begin_a_write_at_once_do_it_once(
    database: DatabaseServer, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("other")
    create, key = WriteRecord.create, "run"

    def slow(self: WriteRecord, connection: Connection) -> None:
        create(self, connection)
        with monkeypatch.context() as patch:
            patch.setattr(WriteRecord, "create", create)
            write(key)  # between the look for the table and the row

    monkeypatch.setattr(WriteRecord, "create", slow)
    assert write(key) == 3
    assert database.run("SELECT count(*) FROM t") == [["6"]]


def test_a_staging_table_that_a_dead_task_holds_is_left_to_a_later_write(
    database: DatabaseServer, write: Write, monkeypatch: pytest.MonkeyPatch, jdbc_spark: SparkSession
) -> None:
    monkeypatch.setattr(record, "_DROP_WAIT_S", 1)
    with failing(monkeypatch, RuntimeError("killed")), pytest.raises(RuntimeError, match="killed"):
        write("run")
    (held,) = staging_tables(database)
    with holding(database, jdbc_spark, held):
        JdbcSink().recover(jdbc_spark, options_of(database), Writer("run", 2))
        assert write("run", 2) == 3
        assert staging_tables(database) == [held]
    write("later")
    assert staging_tables(database) == []
    assert database.run("SELECT count(*) FROM t") == [["6"]]


@contextlib.contextmanager
def holding(database: DatabaseServer, spark: SparkSession, table: str) -> Iterator[None]:
    """A suspended task has written a row into a table, and does not end its transaction."""
    if database.kind == "postgresql":
        login = Login(database.host, database.port, database.database, database.user, PASSWORD)
        with Wire(login) as wire:
            wire.run(f"BEGIN; INSERT INTO {table} (id) VALUES (7)")
            yield
    else:
        opened = Database(spark, options_of(database))
        with opened.connection() as connection:
            connection.run(f"INSERT INTO {table} (id) VALUES (7)")
            yield


def test_a_lost_task_that_holds_the_staging_table_of_its_own_attempt_ends_the_attempt(
    postgres: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.connectors.jdbc.postgres._FREEZE_S", 1)
    monkeypatch.setattr(record, "_DROP_WAIT_S", 1)
    monkeypatch.setattr(sinks, "_TRIES", 1)
    write, fill = writing(postgres, jdbc_spark), staging.fill
    with contextlib.ExitStack() as stack:

        def held(*given: Any) -> Any:
            filled = fill(*given)
            stack.enter_context(holding(postgres, jdbc_spark, staging_tables(postgres)[0]))
            return filled

        with monkeypatch.context() as patch:
            patch.setattr(sinks, "fill", held)
            with pytest.raises(DatabaseBusy):
                write("run")
        assert write("run", 2) == 3
    assert postgres.run("SELECT count(*) FROM t") == [["3"]]


def test_a_driver_that_is_suspended_in_its_commit_holds_nobody_up_for_long(
    postgres: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_runner.connectors.jdbc.postgres._IDLE_S", 1)
    write, merge = writing(postgres, jdbc_spark), sinks._merge  # noqa: SLF001 - the moment before the commit

    def suspended(*given: Any) -> None:
        merge(*given)
        with monkeypatch.context() as patch:
            patch.setattr(sinks, "_merge", merge)
            assert write("run", 2) == 3

    monkeypatch.setattr(sinks, "_merge", suspended)
    with pytest.raises(DatabaseBroke):
        write("run")
    assert postgres.run("SELECT count(*) FROM t") == [["3"]]


def test_a_driver_that_does_not_end_its_commit_lets_the_next_attempt_try_again_later(
    database: DatabaseServer, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "_WAIT_S", 1)
    merge, met = sinks._merge, list[DatabaseBusy]()  # noqa: SLF001 - likewise

    def slow(*given: Any) -> None:
        merge(*given)
        with pytest.raises(DatabaseBusy) as caught:
            write("run", 2)
        met.append(caught.value)

    monkeypatch.setattr(sinks, "_merge", slow)
    assert write("run") == 3
    assert len(met) == 1
    assert write("run", 2) == 3
    assert database.run("SELECT count(*) FROM t") == [["3"]]


def test_of_two_overwrites_at_once_the_rows_of_one_are_there(
    database: DatabaseServer, write: Write, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql, "_LOCK_S", 1)
    monkeypatch.setattr(sinks, "_TRIES", 1)
    dialect = type(sinks.dialect_of(Database(jdbc_spark, options_of(database))))
    lock, merge, waited = dialect.lock, sinks._merge, list[bool]()  # noqa: SLF001 - the moment after the DELETE
    more = {"mode": "overwrite"}
    if database.kind == "mariadb":  # a DELETE keeps others away from the gaps between rows, else
        more["url"] = f"{database.url}?sessionVariables=tx_isolation='READ-COMMITTED'"

    def patient(self: Any, connection: Connection, table: Any) -> None:
        if database.kind == "postgresql":
            connection.run("SET LOCAL lock_timeout TO '1s'")
        lock(self, connection, table)

    def slow(*given: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(sinks, "_merge", merge)
            patch.setattr(dialect, "lock", patient)
            with pytest.raises(DatabaseBusy):
                write("second", first=20, **more)
            waited.append(True)
        merge(*given)

    with monkeypatch.context() as patch:
        patch.setattr(sinks, "_merge", slow)
        write("first", first=10, **more)
    assert waited == [True]
    assert database.run("SELECT id FROM t ORDER BY id") == [["10"], ["11"], ["12"]]
    write("second", 2, first=20, **more)
    assert database.run("SELECT id FROM t ORDER BY id") == [["20"], ["21"], ["22"]]


def test_a_staging_table_that_cannot_be_removed_does_not_fail_a_write_that_has_happened(
    database: DatabaseServer, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Connection.run

    def refusing(self: Connection, statement: str, *values: Any) -> int:
        if statement.startswith("DROP TABLE"):
            raise DatabaseBusy("another transaction was in the way")
        return run(self, statement, *values)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "run", refusing)
        assert write("run") == 3
    assert len(staging_tables(database)) == 1
    write("later")
    assert staging_tables(database) == []


def test_a_key_whose_index_has_further_columns_is_found(
    postgres: DatabaseServer, jdbc_spark: SparkSession
) -> None:
    postgres.run("CREATE TABLE t (id int, name text, PRIMARY KEY (id) INCLUDE (name))")
    frame = jdbc_spark.sql("SELECT 1 AS id, 'a' AS name")
    for number in (1, 2):
        request = WriteRequest("append", Writer(f"run {number}"), ("id",))
        assert JdbcSink().write(frame, options_of(postgres), request).rows == 1
    assert postgres.run("SELECT id, name FROM t") == [["1", "a"]]
