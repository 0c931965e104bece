"""The scripts of docs/connectors/jdbc.md, and that of docs/push.md for two-way tables."""

import json
import re
from pathlib import Path

from pyspark.sql import SparkSession

from spark_runner.references.resolver import Resolver
from spark_runner.references.sources import Sources
from spark_runner.sql.compiler.compile import check_script
from spark_runner.sql.execution.execution import execute
from tests.servers.databases import PASSWORD, DatabaseServer

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "connectors" / "jdbc.md").read_text("utf-8")
WORKED, LIMIT = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(TWO_WAY,) = re.findall(
    r"^```sql\n(.*?)^```$", (DOCS / "push.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)


def test_the_worked_script_runs_again_and_again(
    database: DatabaseServer, jdbc_spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "password").write_text(PASSWORD, "utf-8")
    variables = {"url": database.url, "user": database.user}
    found = check_script(WORKED, file="docs.sql", base_dir=str(tmp_path), variables=variables)
    assert found.errors == found.warnings == ()
    for _ in range(2):
        resolver = Resolver(Sources(secrets={"shop": {"folder": str(tmp_path / "secrets")}}))
        plan = json.loads(json.dumps(found.plan))
        results = execute(jdbc_spark, plan, lambda _phase: None, resolver=resolver)
        assert [each["rows"] for each in results] == [3, 2, 1]
    assert database.run("SELECT id, customer, amount FROM docs_orders ORDER BY id") == [
        ["1", "ada", "99.50"],
        ["3", "cid", "8.25"],
    ]
    (shown,) = jdbc_spark.read.json(f"{tmp_path}/orders").collect()
    assert (shown.id, shown.customer, shown.amount) == (1, "ada", 99.5)


def test_two_tables_that_copy_each_other_take_no_row_of_their_own_for_news(
    database: DatabaseServer, jdbc_spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "password").write_text(PASSWORD, "utf-8")
    for number, table in enumerate(("customers", "people")):
        database.run(
            f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, name VARCHAR(20), origin VARCHAR(20));"
            f"INSERT INTO {table} VALUES ({number}, 'new', NULL)"
        )
    variables = {"url": database.url, "user": database.user}
    found = check_script(TWO_WAY, file="docs.sql", base_dir=str(tmp_path), variables=variables)
    assert found.errors == found.warnings == ()

    def run() -> list[int]:
        resolver = Resolver(Sources(secrets={"shop": {"folder": str(tmp_path / "secrets")}}))
        plan = json.loads(json.dumps(found.plan))
        return [each["rows"] for each in execute(jdbc_spark, plan, lambda _phase: None, resolver=resolver)]

    def rows(table: str) -> list[list[str]]:
        return database.run(f"SELECT id, name, origin FROM {table} ORDER BY id")

    assert run() == [1, 1]
    assert [[*row[:2]] for row in rows("customers")] == [[*row[:2]] for row in rows("people")]
    database.run("UPDATE people SET name = 'changed', origin = NULL WHERE id = 0")
    run()
    assert [row[1] for row in rows("customers")] == ["changed", "new"]
    assert rows("customers")[0][2] == "people", "its next run does not copy it back"


def test_the_setting_for_rejected_rows_is_one() -> None:
    script = f"{LIMIT} SELECT 1;"
    assert check_script(script, file="docs.sql", base_dir="/", variables={}).errors == ()
