"""The record of rejected rows harms no other write, and stays as small as that of the writes."""

import uuid
from dataclasses import replace

import pytest

from spark_runner.sql.text.errors import SqlError
from tests.jdbc_support import Run
from tests.servers.databases import PASSWORD, DatabaseServer

OWNERS = "SELECT count(*), count(DISTINCT owner) FROM orchestrator_rejected"


def script(database: DatabaseServer, *, limit: int | None = 1, values: str = "(1), (NULL)") -> str:
    limits = "" if limit is None else f"SET job.error.limit.rows = {limit};"
    return f"""{limits} SET job.quarantine = bad;
    CREATE TABLE bad WITH ('connector' = 'json', 'path' = 'bad');
    CREATE TABLE t (id INT) {database.options("t")}; INSERT INTO t VALUES {values};"""


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
    postgres: DatabaseServer, run_script: Run
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
    with pytest.raises(SqlError, match=r"orchestrator_rejected.*SELECT, INSERT and DELETE.*work_schema"):
        run_script(script(second))
    assert postgres.run("SELECT count(*) FROM t") == [["5"]]
