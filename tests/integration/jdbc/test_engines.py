"""Tables of MariaDB that have no transactions are not written; those of the connector have them."""

import pytest

from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run
from tests.servers.databases import DatabaseServer

QUARANTINE = "CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad'); SET job.quarantine = bad;"


@pytest.mark.parametrize("engine", ["MyISAM", "Aria"])
def test_a_table_whose_engine_has_no_transactions_is_refused(
    mariadb: DatabaseServer, run_script: Run, engine: str
) -> None:
    mariadb.run(f"CREATE TABLE t (id int NOT NULL) ENGINE={engine}; INSERT INTO t VALUES (7)")
    for verb in ("INTO", "OVERWRITE"):
        with pytest.raises(SqlError, match=f"'t' has the engine {engine}.*ALTER TABLE `t` ENGINE=InnoDB"):
            run_script(
                f"SET job.error.limit.rows = 1; {QUARANTINE}"
                f"CREATE TABLE t (id INT) {mariadb.options('t')}; INSERT {verb} t VALUES (1), (NULL);"
            )
    assert mariadb.run("SELECT id FROM t") == [["7"]]


def test_own_tables_have_transactions_whatever_the_engine_of_the_server_is(
    mariadb: DatabaseServer, run_script: Run
) -> None:
    with_other = mariadb.options("t", create=True).replace(
        mariadb.database, f"{mariadb.database}?sessionVariables=default_storage_engine=MyISAM"
    )
    results = run_script(
        f"SET job.error.limit.rows = 2; {QUARANTINE}"
        f"CREATE TABLE t (id INT NOT NULL, name STRING) {with_other};"
        "INSERT INTO t VALUES (1, 'a'), (2, 'b');"
    )
    assert [each["rows"] for each in results] == [2]
    mariadb.run("ALTER TABLE t ADD CONSTRAINT low CHECK (id < 5)")
    results = run_script(
        f"SET job.error.limit.rows = 2; {QUARANTINE}"
        f"CREATE TABLE t (id INT NOT NULL, name STRING) {with_other};"
        "INSERT INTO t SELECT CAST(id AS INT), 'c' FROM range(3, 7);"
    )
    assert [each["rows"] for each in results] == [2]
    assert mariadb.run("SELECT id FROM t ORDER BY id") == [["1"], ["2"], ["3"], ["4"]]
    engines = (
        "SELECT DISTINCT engine FROM information_schema.tables"
        f" WHERE table_schema = '{mariadb.database}' AND table_type = 'BASE TABLE'"
    )
    assert mariadb.run(engines) == [["InnoDB"]]
    mariadb.run("ALTER TABLE orchestrator_writes ENGINE=MyISAM")  # as an earlier version may have made it
    with pytest.raises(SqlError, match="'orchestrator_writes' has the engine MyISAM"):
        run_script(f"CREATE TABLE t (id INT) {mariadb.options('t')}; INSERT INTO t VALUES (9);")
