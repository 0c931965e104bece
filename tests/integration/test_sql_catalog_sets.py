"""Statement sets that write tables of Spark catalogs, in mode batch."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.catalog_support import derby, ends
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

Run = Callable[..., list[dict[str, Any]]]
SRC = """CREATE TABLE src (id INT) USING json OPTIONS (path 'in');
CREATE VIEW v AS SELECT id, concat('n', id) AS name FROM src LEFT ANTI JOIN shop.S1.none USING (id);
"""
SET = """CREATE TABLE out (id INT) USING json OPTIONS (path 'out');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO out SELECT id FROM v;
  INSERT INTO shop.S1.sold TABLE v;
  INSERT OVERWRITE shop.S1.copy BY NAME SELECT name, id FROM v;
END;
"""
ROWS = "(SELECT array_sort(collect_list(concat(id, name))) FROM shop.S1.{})"


def made(folder: Path) -> str:
    """A database that outlives its driver, with tables."""
    other = "CREATE TABLE IF NOT EXISTS shop.S1.{} (id INT, name STRING);"
    return derby(folder).replace("memory:", f"{folder}/") + other.format("copy") + other.format("none") + "\n"


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"id": 1}\n{"id": 2}')

    def run_script(text: str, attempt: int = 1) -> list[dict[str, Any]]:
        plan = plan_of(f"{made(tmp_path)}{SRC}{text}", tmp_path)
        return execute(spark, plan, lambda _: None, Writer("run", attempt))

    return run_script


def written(folder: Path) -> list[int]:
    files = (folder / "out").glob("part-*")
    return sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines())


def test_a_set_writes_tables_of_catalogs_and_of_files_from_one_read(
    run: Run, spark: SparkSession, tmp_path: Path
) -> None:
    results = run(
        f"""{SET}ASSERT {ROWS.format("sold")} = array('1n1', '2n2');
        ASSERT {ROWS.format("copy")} = array('1n1', '2n2');"""
    )
    assert [(each["target"], each["connector"], each["line"]) for each in results] == [
        *(("out", "json", 10), ("shop.S1.sold", "catalog", 11), ("shop.S1.copy", "catalog", 12))
    ]
    assert written(tmp_path) == [1, 2]
    state: Any = spark._jsparkSession.sharedState()  # noqa: SLF001 - PySpark has no public way to it
    assert state.cacheManager().isEmpty()


def test_what_the_inserts_share_is_computed_once(run: Run) -> None:
    run(
        """CREATE VIEW numbered AS SELECT id, uuid() AS name FROM v;
        BEGIN STATEMENT SET; INSERT INTO shop.S1.sold TABLE numbered; INSERT INTO shop.S1.copy TABLE numbered;
        INSERT INTO shop.S1.copy TABLE numbered; END;
        ASSERT (SELECT count(*) FROM shop.S1.sold JOIN shop.S1.copy USING (id, name)) = 4"""
    )


def test_views_of_a_table_see_its_rows_from_before_the_set_until_its_end(run: Run) -> None:
    run(
        """INSERT INTO shop.S1.sold VALUES (7, 'old');
        CREATE VIEW seen AS SELECT max(id) AS top FROM shop.S1.sold;
        ASSERT (SELECT top FROM seen) = 7;
        BEGIN STATEMENT SET; INSERT INTO shop.S1.sold VALUES (8, 'new'); END;
        ASSERT (SELECT top FROM seen) = 8;"""
    )


def test_an_insert_of_a_set_reads_no_table_that_one_before_it_has_written(run: Run) -> None:
    table = "CREATE TABLE out (id INT) USING json OPTIONS (path 'out');"
    for declared, target in ((table, "INTO out SELECT id"), ("", "INTO shop.S1.copy SELECT id, name")):
        with pytest.raises(
            SqlError, match=r"reads 'shop\.S1\.sold', which an INSERT of the same set"
        ) as found:
            run(
                f"""{declared} BEGIN STATEMENT SET;
INSERT INTO shop.S1.sold TABLE v;
INSERT {target} FROM IDENTIFIER('shop.' || 'S1.sold'); END;"""
            )
        assert found.value.line == 10


def test_the_analysis_shows_the_guarantees(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    run("SELECT 1")
    report = analyse_script(spark, plan_of(f"{made(tmp_path)}{SRC}{SET}", tmp_path), connect=True)
    assert report["errors"] == []
    guarantees = [each["guarantee"].partition(":")[0] for each in report["statements"][-3:]]
    assert guarantees[1:] == [
        "at least once",
        "the rows of the last attempt; the catalog decides whether readers see a part of them",
    ]
    wrong = f"{made(tmp_path)}{SRC}{SET.replace('SELECT name, id', 'SELECT nme, id')}"
    report = analyse_script(spark, plan_of(wrong, tmp_path), connect=True)
    assert [(each["line"], "UNRESOLVED_COLUMN" in each["message"]) for each in report["errors"]] == [
        (12, True)
    ]


@pytest.mark.parametrize("place", ["shop.S1.sold", "shop.S1.copy"])
def test_a_further_attempt_replaces_all_but_the_rows_added_to_catalogs(
    run: Run, tmp_path: Path, place: str
) -> None:
    command = [sys.executable, "-m", "tests.stream_driver", str(tmp_path), "1", "behind an INSERT", place]
    killed = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
    killed.communicate(f"{made(tmp_path)}{SRC}{SET}", timeout=240)
    assert killed.returncode == -signal.SIGKILL
    ends(killed.pid)
    assert written(tmp_path) == [1, 2]
    run(
        f"""{SET}ASSERT {ROWS.format("sold")} = array('1n1', '1n1', '2n2', '2n2');
        ASSERT {ROWS.format("copy")} = array('1n1', '2n2');""",
        attempt=2,
    )
    assert written(tmp_path) == [1, 2]
