"""Errors for users: what is wrong, with which thing, and no secret."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from queues.embedded.ports import free_ports
from spark_runner.connectors.errors import Unreachable
from spark_runner.connectors.jdbc import sink as sinks
from spark_runner.driver.outcome import is_permanent, of_error
from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run
from tests.servers.databases import PASSWORD, DatabaseServer

INSERT = "INSERT INTO t VALUES (1, 'a');"
COLUMNS = "(id INT, name STRING)"


def failed(run: Run, declared: str, statement: str = INSERT) -> str:
    with pytest.raises(SqlError) as caught:
        run(f"{declared}; {statement}")
    text = str(caught.value).split("\n", maxsplit=1)[0]  # the script follows, which holds the password here
    assert PASSWORD not in text
    return text


def test_a_server_that_does_not_answer_is_named_and_the_attempt_may_be_repeated(
    database: DatabaseServer, run_script: Run
) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    away = replace(database, port=port)
    with pytest.raises(SqlError, match=rf"at 127.0.0.1:{port} does not answer") as caught:
        run_script(f"CREATE TABLE t {COLUMNS} {away.options('t')}; {INSERT}")
    assert isinstance(caught.value.__cause__, Unreachable)


def test_a_wrong_login_database_and_table_are_told_apart(database: DatabaseServer, run_script: Run) -> None:
    stranger = replace(database, user="nobody_here")
    assert "check the options 'username' and 'password'" in failed(
        run_script, f"CREATE TABLE t {COLUMNS} {stranger.options('t')}"
    )
    elsewhere = replace(database, database="no_such_database")
    assert "no_such_database" in failed(run_script, f"CREATE TABLE t {COLUMNS} {elsewhere.options('t')}")
    text = failed(run_script, f"CREATE TABLE t {COLUMNS} {database.options('t')}")
    assert f"database '{database.database}'" in text
    assert "has no table 't'" in text


def test_a_missing_right_is_named(database: DatabaseServer, run_script: Run) -> None:
    user = f"reader_{database.database[-12:]}"
    if database.kind == "postgresql":
        database.run(f"CREATE USER {user} PASSWORD '{PASSWORD}'")
    else:
        database.run(f"CREATE USER {user} IDENTIFIED BY '{PASSWORD}'; GRANT SELECT ON * TO {user}")
    database.run("CREATE TABLE t (id int, name varchar(20))")
    text = failed(run_script, f"CREATE TABLE t {COLUMNS} {replace(database, user=user).options('t')}")
    assert re.search("permission denied|command denied", text)
    assert "work_schema" in text


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("name varchar(3)", "(1, 'a'), (2, 'too long')", "too long"),
        ("name int", "(1, 'word')", "word|Incorrect integer"),
        ("name varchar(9), CHECK (id > 1)", "(2, 'x'), (1, 'y')", "constraint"),
    ],
)
def test_a_row_that_the_table_refuses_fails_the_write_as_a_whole(
    database: DatabaseServer, run_script: Run, column: str, values: str, words: str
) -> None:
    database.run(f"CREATE TABLE t (id int, {column})")
    text = failed(
        run_script, f"CREATE TABLE t {COLUMNS} {database.options('t')}", f"INSERT INTO t VALUES {values};"
    )
    assert re.search(words, text, re.IGNORECASE)
    assert database.run("SELECT count(*) FROM t") == [["0"]]


def test_a_column_that_the_table_lacks_is_named_with_the_nearest(
    database: DatabaseServer, run_script: Run
) -> None:
    database.run("CREATE TABLE t (id int, name varchar(20))")
    declared = f"CREATE TABLE t (id INT, nam STRING) {database.options('t')}"
    text = failed(run_script, declared, "CREATE TABLE out USING print; INSERT INTO out SELECT * FROM t;")
    assert "no column 'nam'; did you mean 'name'?" in text


def test_tls_that_the_server_does_not_have_is_an_error_of_the_connection(
    postgres: DatabaseServer, run_script: Run
) -> None:
    postgres.run("CREATE TABLE t (id int, name text)")
    secured = postgres.options("t").replace(postgres.database, f"{postgres.database}?sslmode=require")
    assert "SSL" in failed(run_script, f"CREATE TABLE t {COLUMNS} {secured}")


def test_an_attempt_whose_connections_break_adds_nothing_and_the_next_one_all(
    postgres: DatabaseServer, run_script: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.run("CREATE TABLE t (id int, name text)")
    merge = sinks._merge  # noqa: SLF001 - the moment before the commit

    def breaking(*arguments: object) -> None:
        merge(*arguments)  # type: ignore[arg-type]  # the same ones
        postgres.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE datname = '{postgres.database}' AND pid <> pg_backend_pid()"
        )

    script = f"CREATE TABLE t {COLUMNS} {postgres.options('t')}; {INSERT}"
    with monkeypatch.context() as patch:
        patch.setattr(sinks, "_merge", breaking)
        with pytest.raises(SqlError, match="does not answer") as caught:
            run_script(script, "run", 1)
    assert isinstance(caught.value.__cause__, Unreachable)
    assert postgres.run("SELECT count(*) FROM t") == [["0"]]
    run_script(script, "run", 2)
    assert postgres.run("SELECT count(*) FROM t") == [["1"]]


BROKEN = """CREATE FUNCTION broken() RETURNS text LANGUAGE sql VOLATILE
AS 'SELECT pg_terminate_backend(pg_backend_pid())::text';
CREATE VIEW t AS SELECT id, broken() AS name FROM generate_series(1, 3) id"""


@pytest.mark.parametrize("mode", ["batch", "available-now"])
def test_a_database_that_breaks_off_in_a_task_that_reads_is_no_fault_of_the_script(
    postgres: DatabaseServer, run_script: Run, mode: str, tmp_path: Path
) -> None:
    postgres.run(BROKEN)  # a task that reads the names loses its connection
    stream = {"cursor_column": "id"} if mode != "batch" else {}
    out = f"CREATE TABLE out {COLUMNS} USING parquet OPTIONS (path '{tmp_path}/out')"
    with pytest.raises(SqlError) as caught:
        run_script(
            f"SET job.mode = '{mode}'; CREATE TABLE t {COLUMNS} {postgres.options('t', **stream)};"
            f" {out}; INSERT INTO out SELECT * FROM t;"
        )
    text = str(caught.value).split("\n", maxsplit=1)[0]
    assert re.search("does not answer: (FATAL: )?terminating connection", text)
    assert "Traceback" not in text
    assert of_error(caught.value)["error"]["class"] == "infrastructure"
    assert not is_permanent(caught.value)


def test_a_row_that_a_database_cannot_compute_is_no_fault_of_the_network(
    postgres: DatabaseServer, run_script: Run
) -> None:
    postgres.run("CREATE VIEW t AS SELECT id, (1 / (id - id))::text AS name FROM generate_series(1, 3) id")
    with pytest.raises(SqlError, match="division by zero") as caught:
        run_script(
            f"CREATE TABLE t {COLUMNS} {postgres.options('t')}; CREATE TABLE out USING print;"
            " INSERT INTO out SELECT * FROM t;"
        )
    assert of_error(caught.value)["error"]["class"] == "user"
