# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Streams that go on in later runs: late files, built-in variables, names and options of tables."""

import json
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.checkpoints.folders import LocalFolders
from spark_runner.sql.checkpoints.listing import checkpoints_in
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = "SET job.mode = 'available-now';\n"
ORDERS = "CREATE TABLE orders (id BIGINT) USING json OPTIONS (path 'in');\n"
OUT = "CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');\n"
_DAY = 86_400

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    """Run a script in the folder of the test, with further parts of its plan."""

    def run_script(text: str, writer: Writer | None = None, **parts: object) -> list[dict[str, Any]]:
        return execute(spark, {**plan_of(NOW + text, tmp_path), **parts}, lambda _: None, writer)

    return run_script


def add_file(folder: Path, number: int, *, age: float = 0, text: str = "") -> None:
    (folder / "in").mkdir(exist_ok=True)
    file = folder / f"{number}.json"
    file.write_text(text or json.dumps({"id": number}))
    at = time.time() - age
    os.utime(file, (at, at))
    file.rename(folder / "in" / file.name)


def found(folder: Path) -> list[int]:
    return sorted(
        json.loads(line)["id"]
        for file in (folder / "out").glob("part-*")
        for line in file.read_text().splitlines()
    )


def test_a_file_that_arrives_late_is_read_however_old_it_is(run: Run, tmp_path: Path) -> None:
    copy = f"{ORDERS}{OUT}INSERT INTO out SELECT id FROM orders;"
    add_file(tmp_path, 1)
    run(copy)
    add_file(tmp_path, 2, age=400 * _DAY)
    assert run(copy)[0]["rows"] == 1
    assert found(tmp_path) == [1, 2]


def test_built_in_variables_have_other_values_in_each_attempt_and_run(run: Run, tmp_path: Path) -> None:
    script = (
        "SET spark.sql.session.timeZone = 'UTC'; -- ${ds}\n"
        "CREATE TABLE kinds (k STRING) USING csv OPTIONS (path 'kinds/${ds}', streaming 'false');\n"
        f"{ORDERS}CREATE TABLE out (id BIGINT, run STRING, day DATE) USING json OPTIONS (path 'out');\n"
        "CREATE VIEW v AS SELECT id + 0 * ${attempt} AS id FROM orders JOIN kinds;\n"
        "INSERT INTO out SELECT id, '${run_id}', DATE '${ds}' FROM v;"
    )
    for number, (day, attempt) in enumerate((("01", 1), ("01", 2), ("02", 1))):
        folder = tmp_path / "kinds" / f"2026-01-{day}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "k.csv").write_text("k\na\n")
        add_file(tmp_path, number)
        values = {"ds": f"2026-01-{day}", "run_id": f"job-{day}", "attempt": str(attempt)}
        assert run(script, Writer(f"run-{day}", attempt), built_ins=values)[0]["rows"] == 1
    assert found(tmp_path) == [0, 1, 2]


@pytest.mark.parametrize("options", ["", "/*+ OPTIONS('max_files_per_trigger' = '5') */"])
def test_a_table_begins_at_a_position_also_where_its_use_has_options(
    run: Run, tmp_path: Path, options: str
) -> None:
    add_file(tmp_path, 1, age=_DAY)
    add_file(tmp_path, 2)
    at = datetime.fromtimestamp(time.time() - _DAY / 2, UTC).isoformat()
    use = {"start": "fresh", "run_key": "run", "positions": {"orders": at}}
    run(f"{ORDERS}{OUT}INSERT INTO out SELECT id FROM orders {options};", checkpoint=use)
    assert found(tmp_path) == [2]


@pytest.mark.parametrize("name", ["\u8ba2" * 80, ".", ".quarantine"])
def test_each_name_of_a_table_gives_a_checkpoint_of_its_own(run: Run, tmp_path: Path, name: str) -> None:
    script = f"{ORDERS}{OUT.replace('out', f'`{name}`', 1)}INSERT INTO `{name}` SELECT id FROM orders;"
    add_file(tmp_path, 1)
    run(script)
    run(script, checkpoint={"start": "fresh", "run_key": "next"})
    assert found(tmp_path) == [1, 1]
    (checkpoint,) = checkpoints_in(LocalFolders(), f"file:{tmp_path}/checkpoints", "job")
    assert (checkpoint.batches, checkpoint.error) == (1, "")


def test_names_with_commas_are_no_numbers_of_inserts(spark: SparkSession, tmp_path: Path) -> None:
    script = (
        f"SET job.mode = 'streaming'; SET job.trigger = '1 s'; {ORDERS}{OUT}"
        "CREATE TABLE `out,2` (id BIGINT) USING json OPTIONS (path 'other');"
        "INSERT INTO out SELECT id FROM orders; INSERT INTO out SELECT id FROM orders;"
        "INSERT INTO `out,2` SELECT id FROM orders;"
    )

    def look() -> None:
        if sum(each.get("total_rows", 0) for each in control.shown().get("streams", {}).values()) == 3:
            control.stopping.set()

    add_file(tmp_path, 1)
    control = StreamControl(look)
    at_last = threading.Timer(90, control.stopping.set)  # a test that fails must not wait forever
    at_last.start()
    try:
        results = execute(spark, plan_of(script, tmp_path), lambda _: None, control=control)
    finally:
        at_last.cancel()
    assert [(each["target"], each["rows"]) for each in results] == [("out", 1), ("out", 1), ("out,2", 1)]
    assert set(control.shown()["streams"]) == {"out", "out,2", "out%2C2"}


@pytest.mark.parametrize("limit", ["", "SET job.error.limit.rows = 1;"])
@pytest.mark.parametrize("condition", ["false", "id > 1 AND 1 = 0", "current_date() < DATE '2020-01-01'"])
def test_a_stream_of_csv_without_any_column_may_have_a_condition_that_no_row_meets(
    run: Run, tmp_path: Path, condition: str, limit: str
) -> None:
    add_file(tmp_path, 1, text="id\n1\n2\n")
    orders = ORDERS.replace("json", "csv")
    (result,) = run(f"{limit}{orders}{OUT}INSERT INTO out SELECT 7 FROM orders WHERE {condition};")
    assert (result["rows"], result["batches"], found(tmp_path)) == (0, 1, [])
