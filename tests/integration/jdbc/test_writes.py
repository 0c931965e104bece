"""Writes to real databases: append, overwrite, upsert, delete, and what a further attempt does."""

import uuid
from dataclasses import replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # it publishes no types
import pytest

from spark_runner.connectors.jdbc.copy_task import CopyTask
from spark_runner.connectors.jdbc.failures import DatabaseBroke
from spark_runner.connectors.jdbc.postgres import TASK_SETTING
from spark_runner.connectors.jdbc.record import WriteRecord
from spark_runner.connectors.jdbc.staging import fill
from spark_runner.connectors.jdbc.wire import Login, Wire
from spark_runner.driver.outcome import is_permanent
from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run
from tests.servers.databases import PASSWORD, DatabaseServer, local_pgbouncer

KEYED = "(id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED)"


def staging_tables(database: DatabaseServer) -> list[list[str]]:
    return database.run(
        "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'orchestrator_staging%'"
        f" AND '{database.database}' IN (table_schema, table_catalog)"
    )


def test_a_further_attempt_repeats_no_insert(database: DatabaseServer, run_script: Run) -> None:
    database.run("CREATE TABLE t (id int, name varchar(20))")
    script = f"""CREATE TABLE t (id INT, name STRING) {database.options("t")};
    INSERT INTO t VALUES (1, 'a');
    INSERT INTO t SELECT id, 'b' FROM range(2, 5);"""
    key = uuid.uuid4().hex
    counts = [[each["rows"] for each in run_script(script, key, attempt)] for attempt in (1, 2, 3)]
    assert counts == [[1, 3]] * 3
    run_script(script)  # another run adds its rows
    assert database.run("SELECT name, count(*) FROM t GROUP BY name ORDER BY name") == [
        ["a", "2"],
        ["b", "6"],
    ]
    assert staging_tables(database) == []


def test_without_the_record_an_attempt_would_add_rows_twice(
    database: DatabaseServer, run_script: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.run("CREATE TABLE t (id int)")
    script = f"CREATE TABLE t (id INT) {database.options('t')}; INSERT INTO t VALUES (1);"
    key = uuid.uuid4().hex
    run_script(script, key)
    monkeypatch.setattr(WriteRecord, "_id", lambda *_: uuid.uuid4().hex)
    run_script(script, key, 2)
    assert database.run("SELECT count(*) FROM t") == [["2"]]


@pytest.mark.parametrize("change", ["TRUNCATE TABLE {}", "INSERT INTO {0} SELECT * FROM {0}"])
def test_a_write_whose_staged_rows_changed_behind_it_fails_and_is_tried_again(
    database: DatabaseServer, run_script: Run, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    database.run("CREATE TABLE t (id int); INSERT INTO t VALUES (7);")
    script = f"""CREATE TABLE t (id INT) {database.options("t")};
    INSERT OVERWRITE t SELECT id FROM range(1, 5);"""
    key = uuid.uuid4().hex

    def changed(*given: Any) -> Any:
        filled = fill(*given)
        ((name,),) = staging_tables(database)
        database.run(change.format(name))  # a crash of the server empties the table, a lost task adds rows
        return filled

    with monkeypatch.context() as patch:
        patch.setattr("spark_runner.connectors.jdbc.sink.fill", changed)
        with pytest.raises(SqlError, match="its staging table has") as caught:
            run_script(script, key)
    assert isinstance(caught.value.__cause__, DatabaseBroke)
    assert not is_permanent(caught.value)
    assert database.run("SELECT id FROM t") == [["7"]]
    assert staging_tables(database) == []
    assert [each["rows"] for each in run_script(script, key, 2)] == [4]
    assert database.run("SELECT id FROM t ORDER BY id") == [["1"], ["2"], ["3"], ["4"]]


def test_the_last_row_of_a_key_replaces_the_others(database: DatabaseServer, run_script: Run) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, name varchar(20), kept int DEFAULT 7)")
    database.run("INSERT INTO t (id, name, kept) VALUES (1, 'old', 1), (9, 'other', 9)")
    run_script(
        f"""CREATE TABLE t {KEYED} {database.options("t")};
        INSERT INTO t SELECT * FROM VALUES (1, 'a'), (2, 'b'), (1, 'c') AS v (id, name);"""
    )
    found = database.run("SELECT id, name, kept FROM t ORDER BY id")
    assert found == [["1", "c", "1"], ["2", "b", "7"], ["9", "other", "9"]]


def test_marked_rows_are_deleted_by_their_key(database: DatabaseServer, run_script: Run) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, name varchar(20))")
    database.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    run_script(
        f"""CREATE TABLE t (id INT, name STRING, gone BOOLEAN, PRIMARY KEY (id) NOT ENFORCED)
        {database.options("t", delete_column="gone")};
        INSERT INTO t VALUES (1, 'x', true), (2, 'y', NULL), (3, 'z', true), (3, 'zz', false),
        (4, 'q', true);"""
    )
    assert database.run("SELECT id, name FROM t ORDER BY id") == [["2", "y"], ["3", "zz"]]


def test_a_row_that_deletes_needs_its_key_alone(database: DatabaseServer, run_script: Run) -> None:
    database.run("CREATE TABLE t (id int PRIMARY KEY, name varchar(20) NOT NULL)")
    database.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    run_script(
        f"""CREATE TABLE t (id INT, name STRING, gone BOOLEAN, PRIMARY KEY (id) NOT ENFORCED)
        {database.options("t", delete_column="gone")};
        INSERT INTO t VALUES (1, NULL, true), (3, 'c', false);"""
    )
    assert database.run("SELECT id, name FROM t ORDER BY id") == [["2", "b"], ["3", "c"]]


def test_an_overwrite_that_fails_leaves_the_old_rows(database: DatabaseServer, run_script: Run) -> None:
    database.run("CREATE TABLE t (id int NOT NULL)")
    declared = f"CREATE TABLE t (id INT) {database.options('t')};"
    run_script(f"{declared} INSERT INTO t VALUES (1), (2);")
    with pytest.raises(SqlError, match=r"(?i)null"):
        run_script(f"{declared} INSERT OVERWRITE t VALUES (3), (NULL);")
    assert database.run("SELECT id FROM t ORDER BY id") == [["1"], ["2"]]
    run_script(f"{declared} INSERT OVERWRITE t VALUES (4);")
    assert database.run("SELECT id FROM t") == [["4"]]
    assert staging_tables(database) == []


def test_columns_that_the_table_lacks_fail_or_are_added_or_ignored(
    database: DatabaseServer, run_script: Run
) -> None:
    database.run("CREATE TABLE t (id int)")

    def write(policy: str) -> None:
        run_script(
            f"CREATE TABLE t (id INT, more STRING) {database.options('t', new_columns=policy)};"
            " INSERT INTO t VALUES (1, 'x');"
        )

    with pytest.raises(SqlError, match="table 't' lacks more"):
        write("fail")
    write("ignore")
    write("add")
    assert database.run("SELECT id, coalesce(more, '-') FROM t ORDER BY 2") == [["1", "-"], ["1", "x"]]


def test_rows_go_through_a_pooler_that_gives_its_servers_to_other_clients(
    postgres: DatabaseServer, run_script: Run
) -> None:
    postgres.run("CREATE TABLE t (id int PRIMARY KEY, name text)")
    values = ", ".join(f"({number}, 'n')" for number in range(50))
    with local_pgbouncer(postgres.port) as port:
        for copy_rows in (True, False) * 3:  # so that its connections have had other clients
            table = replace(postgres, port=port).options("t", copy_rows=copy_rows)
            (found,) = run_script(f"CREATE TABLE t {KEYED} {table}; INSERT INTO t VALUES {values};")
            assert found["rows"] == 50
    assert postgres.run("SELECT count(*), sum(id) FROM t") == [["50", "1225"]]


def test_the_rows_of_a_task_have_its_number_though_a_pooler_gives_its_server_away(
    postgres: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = f"task bigint DEFAULT current_setting('{TASK_SETTING}', true)::bigint"
    postgres.run(f"CREATE TABLE t (id int, {task})")
    copy_in = Wire.copy_in
    with local_pgbouncer(postgres.port) as port:
        login = Login("127.0.0.1", port, postgres.database, postgres.user, PASSWORD, {"sslmode": "disable"})

        def behind_another(self: Wire, *given: Any) -> None:
            with Wire(login) as other:
                other.run(f"SET {TASK_SETTING} = '7'")
            copy_in(self, *given)

        monkeypatch.setattr(Wire, "copy_in", behind_another)
        lines = pa.RecordBatch.from_pydict({"line": ["1\n", "2\n"]})
        (done,) = CopyTask(login, "COPY t (id) FROM STDIN")(iter([lines]))
    assert done.to_pylist() == [{"task": 0, "row_count": 2, "state": None, "message": None}]
    assert postgres.run("SELECT id, task FROM t ORDER BY id") == [["1", "0"], ["2", "0"]]


def test_a_missing_table_is_created_on_demand(database: DatabaseServer, run_script: Run) -> None:
    insert = "INSERT INTO t VALUES (1, 'a');"
    with pytest.raises(SqlError, match=r"has no table 't'; .* CREATE TABLE .*PRIMARY KEY"):
        run_script(f"CREATE TABLE t {KEYED} {database.options('t')}; {insert}")
    run_script(f"CREATE TABLE t {KEYED} {database.options('t', create=True)}; {insert}")
    assert database.run("SELECT id, name FROM t") == [["1", "a"]]


def test_a_key_without_an_index_is_refused(database: DatabaseServer, run_script: Run) -> None:
    database.run("CREATE TABLE t (id int, name varchar(20))")
    with pytest.raises(SqlError, match=r"no unique index on \(id\).*ADD PRIMARY KEY"):
        run_script(f"CREATE TABLE t {KEYED} {database.options('t')}; INSERT INTO t VALUES (1, 'a');")


def test_a_write_without_copy_gives_the_same_rows(postgres: DatabaseServer, run_script: Run) -> None:
    postgres.run("CREATE TABLE t (id int PRIMARY KEY, name text, doc jsonb, at timestamptz)")
    run_script(
        f"""CREATE TABLE t (id INT, name STRING, doc STRING, at TIMESTAMP, PRIMARY KEY (id) NOT ENFORCED)
        {postgres.options("t", copy_rows=False)};
        INSERT INTO t VALUES (1, 'x', '{{"a": 1}}', TIMESTAMP '2026-03-01 12:00:00+01:00'),
        (1, 'y', NULL, NULL),
        (2, NULL, '{{"a": 1}}', TIMESTAMP '2026-03-01 12:00:00+01:00');"""
    )
    found = postgres.run("SELECT id, name, doc, at AT TIME ZONE 'UTC' FROM t ORDER BY id")
    assert found == [["1", "y", "", ""], ["2", "", '{"a": 1}', "2026-03-01 11:00:00"]]
