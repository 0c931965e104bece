"""Tables of Iceberg and Delta Lake in mode batch: exact numbers of rows, and one write for all attempts."""

# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.connectors.java_classes import java_class
from spark_runner.driver.outcome import is_permanent
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.lakes import lake_kind
from spark_runner.sql.text.errors import SqlError
from tests.lake_support import KINDS, table, target
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

Run = Callable[..., list[dict[str, Any]]]
TEN = "SELECT CAST(id AS INT) AS id, id * 10 AS n FROM range(0, 10, 1, 3)"


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(lake_spark: SparkSession, lake: str, tmp_path: Path) -> Run:
    """Runs a script, in which `$t` is the table; `rows` of the table afterwards are in order."""

    def run_script(text: str, key: str = "run", attempt: int = 1) -> list[dict[str, Any]]:
        script = table(lake, tmp_path) + text.replace("$t", target(lake, tmp_path))
        return execute(lake_spark, plan_of(script, tmp_path), lambda _: None, Writer(key, attempt))

    return run_script


def holds(run: Run, *rows: str) -> None:
    """Check the rows of the table, each as `id:n`."""
    found = "(SELECT array_sort(collect_list(concat(id, ':', n))) FROM $t)"
    expected = f"array({', '.join(map(repr, rows))})" if rows else "array()"
    run(f"ASSERT to_json({found}) = to_json({expected})", key="look")


def test_each_statement_reports_how_many_rows_it_adds_changes_or_deletes(run: Run) -> None:
    source = "SELECT CAST(id AS INT) AS id, 1L AS n FROM range({})"
    results = run(
        f"""INSERT INTO $t {TEN};
        MERGE INTO $t t USING ({source.format("8, 13")}) s ON t.id = s.id
          WHEN MATCHED AND s.id = 9 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.n
          WHEN NOT MATCHED THEN INSERT *;
        DELETE FROM $t WHERE id IN (0, 4, 8);
        DELETE FROM $t WHERE id = 77;
        MERGE INTO $t t USING ({source.format("12, 15")}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *;
        MERGE INTO $t t USING ({source.format("50, 55")}) s ON t.id = s.id WHEN MATCHED THEN DELETE;
        INSERT OVERWRITE $t SELECT id, n FROM $u WHERE id < 4;
        DELETE FROM $t WHERE true;
        INSERT INTO $t BY NAME SELECT 7L AS n, 1 AS id;""".replace("$u", f"({TEN})")
    )
    assert [each["rows"] for each in results] == [10, 5, 3, 0, 2, 0, 4, 4, 1]
    holds(run, "1:7")


CHANGES = """INSERT INTO $t SELECT 1, 10L UNION ALL SELECT 2, 20L;
    DELETE FROM $t WHERE id = 2;
    INSERT INTO $t VALUES (2, 5L);
    MERGE INTO $t t USING (SELECT 1 AS id, 1L AS n) s ON t.id = s.id
      WHEN MATCHED THEN UPDATE SET n = t.n + s.n;
    """


def test_a_further_attempt_repeats_no_write_and_reports_the_same_rows(run: Run) -> None:
    first = run(CHANGES)
    again = run(f"{CHANGES}INSERT INTO $t VALUES (3, 3L);", attempt=2)
    assert [each["rows"] for each in first] == [2, 1, 1, 1]
    # The commit of a DELETE of whole files has no mark in Iceberg.
    assert [each["rows"] for each in again] in ([2, 1, 1, 1, 1], [2, None, 1, 1, 1])
    holds(run, "1:11", "2:5", "3:3")
    run("INSERT INTO $t VALUES (3, 3L)", key="another")
    run("INSERT INTO $t VALUES (3, 3L)", key="another", attempt=2)
    holds(run, "1:11", "2:5", "3:3", "3:3")


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_an_overwrite_that_is_followed_by_an_insert_runs_once(run: Run) -> None:
    for attempt in (1, 2):
        run("INSERT OVERWRITE $t VALUES (1, 1L); INSERT INTO $t VALUES (2, 2L);", attempt=attempt)
        holds(run, "1:1", "2:2")


def test_a_table_that_each_attempt_replaces_has_the_rows_of_the_last_one(run: Run, lake: str) -> None:
    name = "lake.db.r" if lake == "iceberg" else "spark_catalog.default.replaced"
    replaced = f"CREATE OR REPLACE TABLE {name} (id INT) USING {lake}; INSERT INTO {name} VALUES (1);"
    for attempt in (1, 2, 3):
        (result,) = run(f"{replaced} ASSERT (SELECT count(*) FROM {name}) = 1;", attempt=attempt)
        assert result["rows"] == 1


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_a_table_that_delta_lake_does_not_replace_is_an_error(run: Run) -> None:
    with pytest.raises(SqlError, match=r"Delta Lake does not replace '.*write CREATE TABLE IF NOT EXISTS"):
        run("CREATE OR REPLACE TABLE $t (id INT, n BIGINT) USING delta")


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_a_set_writes_its_tables_once(run: Run) -> None:
    script = """CREATE TABLE out (id INT) USING json OPTIONS (path 'out');
    BEGIN STATEMENT SET; INSERT INTO $t VALUES (1, 1L); INSERT INTO out SELECT 5;
    INSERT INTO $t VALUES (1, 1L); END;"""
    run(script)
    run(script, attempt=2)
    holds(run, "1:1", "1:1")


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_the_settings_of_the_script_come_back_behind_a_write(run: Run, lake_spark: SparkSession) -> None:
    note, txn = "commitInfo.userMetadata", "write.txnAppId"
    (result,) = run(
        f"""SET spark.databricks.delta.{note} = mine; SET spark.databricks.delta.{txn} = own;
        SET spark.databricks.delta.write.txnVersion = 0;
        INSERT INTO $t VALUES (1, 1L); RESET spark.databricks.delta.{note}"""
    )
    assert result["rows"] in {1, None}
    assert lake_spark.conf.get(f"spark.databricks.delta.{txn}", None) is None


def test_a_catalog_that_does_not_answer_is_an_error_and_not_a_table_of_another_kind() -> None:
    class Silent:
        def sql(self, text: str) -> None:
            raise AnalysisException(f"no answer to {text}")

    with pytest.raises(AnalysisException, match=r"no answer to DESCRIBE TABLE EXTENDED lake\.db\.t"):
        lake_kind(cast("SparkSession", Silent()), "lake.db.t")


MISFITS = [
    ("INSERT INTO $t SELECT 1, 1L, 'x'", "TOO_MANY_DATA_COLUMNS", "schema mismatch"),
    ("INSERT INTO $t BY NAME SELECT 1 AS id, 1L AS n, 2 AS more", "TOO_MANY_DATA_COLUMNS", "schema mismatch"),
    ("INSERT INTO $t SELECT 1", "NOT_ENOUGH_DATA_COLUMNS", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
    ("INSERT INTO $t SELECT 'a', 1L", "CANNOT_SAFELY_CAST", "CAST_INVALID_INPUT"),
]


def test_other_columns_than_those_of_the_table_are_an_error_and_write_nothing(run: Run, lake: str) -> None:
    for statement, *said in MISFITS:
        with pytest.raises(SqlError, match=said[lake == "delta"]) as found:
            run(statement)
        assert found.value.line == (5 if lake == "iceberg" else 3)
        assert is_permanent(found.value) is ("CAST_INVALID" not in str(found.value)), "other rows may fit"
    holds(run)


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_delta_lake_adds_columns_where_a_setting_allows_it(run: Run) -> None:
    run(
        """SET spark.databricks.delta.schema.autoMerge.enabled = true;
        INSERT INTO $t BY NAME SELECT 1 AS id, 1L AS n, 'x' AS more;
        ASSERT (SELECT more FROM $t) = 'x';"""
    )


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_a_name_that_use_completes_is_that_of_a_lake(run: Run) -> None:
    script = """USE CATALOG lake; INSERT INTO db.t VALUES (1, 1L);
    MERGE INTO db.t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = t.n + 1;"""
    for attempt in (1, 2):
        assert [each["rows"] for each in run(script, attempt=attempt)] == [1, 1]
    holds(run, "1:2")


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
@pytest.mark.parametrize("branch", ["branch_audit", "`branch_a b`"])
def test_a_branch_is_written_once_and_reports_its_rows(
    run: Run, lake_spark: SparkSession, tmp_path: Path, branch: str
) -> None:
    run("INSERT INTO $t VALUES (1, 1L)", key="before")
    catalog = java_class(lake_spark, "org.apache.iceberg.hadoop.HadoopTables")(
        lake_spark._jsc.hadoopConfiguration()  # noqa: SLF001 - branches are made by Java, or by an extension
    )
    name = branch.strip("`").removeprefix("branch_")
    catalog.load(f"{tmp_path}/iceberg/db/t").manageSnapshots().createBranch(name).commit()
    changes = CHANGES.replace("$t", f"$t.{branch}").replace("(2, 5L)", "(2, 5L), (9, 9L)")
    first = run(changes)
    assert [each["rows"] for each in first] == [2, 1, 2, 2]
    again = run(changes, attempt=2)
    assert [each["rows"] for each in again] in ([2, 1, 2, 2], [2, None, 2, 2])
    holds(run, "1:1")
    run(f"ASSERT (SELECT count(*) FROM $t.{branch}) = 4 AND (SELECT sum(n) FROM $t.{branch}) = 27")


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_a_table_whose_name_is_like_that_of_a_branch_is_a_table(run: Run) -> None:
    script = """CREATE TABLE IF NOT EXISTS lake.db.branch_t (id INT) USING iceberg;
    INSERT INTO lake.db.branch_t VALUES (1), (2); ASSERT (SELECT count(*) FROM lake.db.branch_t) = 2"""
    for attempt in (1, 2):
        assert [each["rows"] for each in run(script, attempt=attempt)] == [2]


def test_the_analysis_shows_what_a_lake_promises(
    run: Run, lake_spark: SparkSession, lake: str, tmp_path: Path
) -> None:
    run("INSERT INTO $t VALUES (1, 1L)")
    script = f"""{table(lake, tmp_path)}INSERT INTO $t VALUES (2, 2L); INSERT OVERWRITE $t VALUES (2, 2L);
    MERGE INTO $t t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE;
    DELETE FROM $t WHERE id = 1;""".replace("$t", target(lake, tmp_path))
    report = analyse_script(lake_spark, plan_of(script, tmp_path), connect=True)
    assert report["errors"] == []
    said = [each["guarantee"].partition(":")[0] for each in report["statements"][-4:]]
    assert said[:3] == ["exactly once"] * 3
    assert (said[3] == "exactly once") is (lake == "delta")
