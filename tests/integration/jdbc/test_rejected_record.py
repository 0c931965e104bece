"""The record of rejected rows harms no other write, and stays as small as that of the writes."""

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Tolerance, Writer, WriteRequest
from spark_runner.connectors.errors import TargetChanged
from spark_runner.connectors.jdbc import sink as sinks
from spark_runner.connectors.jdbc.sink import JdbcSink
from spark_runner.sql.text.errors import SqlError
from tests.integration.jdbc.test_record import options_of
from tests.jdbc_support import Run
from tests.servers.databases import PASSWORD, DatabaseServer

OWNERS = "SELECT count(*), count(DISTINCT owner) FROM orchestrator_rejected"
Write = Callable[..., int]


def script(database: DatabaseServer, *, limit: int | None = 1, values: str = "(1), (NULL)") -> str:
    limits = "" if limit is None else f"SET job.error.limit.rows = {limit};"
    return f"""{limits} SET job.quarantine = bad;
    CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');
    CREATE TABLE t (id INT) {database.options("t")}; INSERT INTO t VALUES {values};"""


def writing(database: DatabaseServer, spark: SparkSession) -> Write:
    """Writes a row that fits and one that does not, as a driver of its own or by this sink."""
    database.run("CREATE TABLE t (id int NOT NULL)")
    options = options_of(database)

    def write(key: str, sink: JdbcSink | None = None) -> int:
        frame = spark.sql("SELECT CAST(NULLIF(id, 0) AS INT) AS id FROM range(2)")
        request = WriteRequest("append", Writer(key, 2), may_reject=Tolerance(5))
        written = (sink or JdbcSink()).write(frame, options, request)
        assert written.rejected is not None
        assert written.rejected.count() == 1
        return written.rows

    return write


def test_tables_of_unlike_collations_do_not_fail_a_write(mariadb: DatabaseServer, run_script: Run) -> None:
    mariadb.run(
        f"ALTER DATABASE {mariadb.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;"
        "CREATE TABLE t (id int NOT NULL)"
    )
    run_script(script(mariadb))
    # As an earlier version has made it.
    mariadb.run("ALTER TABLE orchestrator_writes CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
    run_script(script(mariadb, limit=None, values="(2), (3)"))
    assert mariadb.run(OWNERS) == [["1", "1"]]
    mariadb.run("DELETE FROM orchestrator_writes")
    run_script(script(mariadb))
    assert mariadb.run(OWNERS) == [["1", "1"]]
    assert mariadb.run("SELECT count(*) FROM t") == [["4"]]


def test_a_user_without_rights_on_the_rejected_rows_of_another_can_write(
    postgres: DatabaseServer, jdbc_spark: SparkSession, run_script: Run
) -> None:
    user = f"second_{postgres.database[-12:]}"
    postgres.run("CREATE TABLE t (id int NOT NULL)")
    run_script(script(postgres))
    postgres.run(
        f"CREATE USER {user} PASSWORD '{PASSWORD}'; GRANT ALL ON SCHEMA public TO {user};"
        f" GRANT ALL ON t, orchestrator_writes TO {user}"
    )
    second, key = replace(postgres, user=user), uuid.uuid4().hex
    for limit in (None, 1):
        for attempt in (1, 2):
            text = script(second, limit=limit, values="(2), (3)")
            assert [each["rows"] for each in run_script(text, f"{key} {limit}", attempt)] == [2]
    frame = jdbc_spark.sql("SELECT 4 AS id")
    for batch in (1, 2):
        request = WriteRequest("append", Writer(f"stream-{batch}", 2))
        assert JdbcSink().write(frame, options_of(second), request).rows == 1
    with pytest.raises(SqlError, match=r"orchestrator_rejected.*SELECT, INSERT and DELETE.*work_schema"):
        run_script(script(second))
    assert postgres.run("SELECT count(*) FROM t") == [["7"]]


def test_a_stream_keeps_the_rejected_rows_of_its_last_micro_batch_alone(
    database: DatabaseServer, jdbc_spark: SparkSession
) -> None:
    write, sink = writing(database, jdbc_spark), JdbcSink()
    write("other-1")
    for batch in range(3):
        assert write(f"stream-{batch}", sink) == 1
    assert database.run(OWNERS) == [["2", "2"]]
    assert write("stream-2") == 1  # which has happened
    assert database.run("SELECT count(*) FROM t") == [["4"]]


@pytest.mark.parametrize("later", ["done", "begun"])
def test_a_driver_that_was_suspended_before_its_second_try_does_not_take_the_write_back(
    database: DatabaseServer, jdbc_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, later: str
) -> None:
    write = writing(database, jdbc_spark)
    sieving = sinks._Move.sieving  # noqa: SLF001 - the moment between both tries

    def die(*_: object) -> None:
        raise RuntimeError("killed")

    def suspended(self: Any, *given: Any) -> Any:
        monkeypatch.setattr(sinks._Move, "sieving", sieving)  # noqa: SLF001 - likewise
        if later == "done":
            assert write("stream-7") == 1
        else:
            with monkeypatch.context() as patch:
                patch.setattr(sinks, "fill", die)
                with pytest.raises(RuntimeError, match="killed"):
                    write("stream-7")
        return sieving(self, *given)

    monkeypatch.setattr(sinks._Move, "sieving", suspended)  # noqa: SLF001 - likewise
    with pytest.raises(TargetChanged, match="another attempt"):
        write("stream-7")
    assert database.run("SELECT count(*) FROM t") == [["1" if later == "done" else "0"]]
    assert write("stream-7") == 1
    assert database.run("SELECT count(*) FROM t") == [["1"]]


def test_rejected_rows_which_may_be_large_are_read_a_few_at_a_time(
    postgres: DatabaseServer, jdbc_spark: SparkSession
) -> None:
    postgres.run("CREATE TABLE t (id int NOT NULL)")
    request = WriteRequest("append", Writer("run"), may_reject=Tolerance(5))
    found = JdbcSink().write(jdbc_spark.sql("SELECT CAST(NULL AS INT) AS id"), options_of(postgres), request)
    assert found.rejected is not None
    plan: Any = found.rejected._jdf.queryExecution().analyzed()  # noqa: SLF001 - options of a read are there alone
    assert plan.collectLeaves().head().relation().jdbcOptions().fetchSize() == 10
