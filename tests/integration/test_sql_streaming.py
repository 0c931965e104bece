# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Mode streaming: queries that run at the same time until they are asked to end, and what they show."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.preview import preview
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.text.errors import SqlError
from tests.spark_programs import program_environment
from tests.stream_driver import plan_of
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

Streams = Mapping[str, Mapping[str, Any]]
STREAMING = "SET job.mode = 'streaming';\nSET job.trigger = '200 ms';\n"
NOW = "SET job.mode = 'available-now';\n\n"
TABLES = """CREATE TABLE orders (id BIGINT) USING json OPTIONS (path 'in', max_files_per_trigger 1);
CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
"""
COPY = TABLES + "INSERT INTO out SELECT id FROM orders;"


class Job:
    """Runs scripts in one folder; streams are asked to end when `ends` accepts what they show."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder

    def run(
        self,
        script: str,
        ends: Callable[[Streams], bool] = lambda _: False,
        control: StreamControl | None = None,
        **variables: str,
    ) -> list[dict[str, Any]]:
        def look() -> None:
            self.shown = own.shown().get("streams", {})
            if ends(self.shown):
                own.stopping.set()

        own = StreamControl(look)
        control = control or own
        at_last = threading.Timer(200, control.stopping.set)  # a test that fails must not wait forever
        at_last.start()
        try:
            plan = plan_of(script, self.folder, **variables)
            return execute(self.spark, plan, lambda _: None, control=control)
        finally:
            at_last.cancel()

    def add_file(self, *ids: int, folder: str = "in") -> None:
        (self.folder / folder).mkdir(exist_ok=True)
        file = self.folder / f"{ids[0]}.json"
        file.write_text("\n".join(json.dumps({"id": each}) for each in ids))
        os.utime(file, (1_700_000_000 + ids[0], 1_700_000_000 + ids[0]))  # Spark reads the oldest first
        file.rename(self.folder / folder / file.name)

    def found(self, folder: str = "out") -> list[int]:
        return sorted(
            json.loads(line)["id"]
            for file in (self.folder / folder).glob("part-*")
            for line in file.read_text().splitlines()
        )

    def counted(self, target: str = "out") -> set[str]:
        """The micro-batches that Spark has counted as done."""
        folder = self.folder / "checkpoints" / "job" / target / "commits"
        return {file.name for file in folder.iterdir() if file.name.isdigit()}


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Job:
    return Job(spark, tmp_path)


def has_rows(**rows: int) -> Callable[[Streams], bool]:
    return lambda shown: all(
        shown.get(name, {}).get("total_rows", 0) >= count for name, count in rows.items()
    )


def test_one_script_has_the_same_target_in_each_mode(spark: SparkSession, tmp_path: Path) -> None:
    script = f"SET job.mode = '${{mode}}';\n{COPY}".replace("_trigger 1", "_trigger 9")
    for mode in ("batch", "available-now", "streaming"):
        job = Job(spark, tmp_path / mode)
        job.folder.mkdir()
        for number in range(3):
            job.add_file(*range(number * 3, number * 3 + 3))
        (result,) = job.run(script, has_rows(out=9), mode=mode)
        assert (result["rows"], result.get("batches", 1)) == (9, 1)
        assert job.found() == list(range(9)), mode


def test_a_stream_goes_on_in_another_mode_from_where_it_ended(job: Job) -> None:
    job.add_file(1)
    job.run(NOW + COPY)
    job.add_file(2)
    assert job.run(STREAMING + COPY, has_rows(out=1))[0]["rows"] == 1
    job.add_file(3)
    assert job.run(NOW + COPY)[0]["rows"] == 1
    assert job.found() == [1, 2, 3]


def test_all_queries_run_at_once_and_each_shows_its_triggers_also_idle_ones(job: Job) -> None:
    script = (
        STREAMING
        + TABLES.replace("max_files_per_trigger 1", "max_files_per_trigger 5")
        + (
            "CREATE TABLE more (id BIGINT) USING json OPTIONS (path 'more');"
            "INSERT INTO out SELECT id FROM orders; INSERT INTO more SELECT id FROM orders;"
            "INSERT INTO out SELECT id + 10 FROM orders;"
        )
    )
    job.add_file(1)
    job.add_file(2)

    def ends(shown: Streams) -> bool:
        return len(shown) == 3 and all(
            each["total_rows"] == 2 and each["triggers"] > 3 for each in shown.values()
        )

    results = job.run(script, ends)
    assert [(each["target"], each["rows"], each["batches"]) for each in results] == [
        *(("out", 2, 1), ("more", 2, 1), ("out", 2, 1)),
    ]
    assert (job.found(), job.found("more")) == ([1, 2, 11, 12], [1, 2])
    assert job.shown.keys() == {"out", "more", "out,2"}
    facts = job.shown["out"]
    assert (facts["batch"], facts["rows"], facts["total_rows"], facts["rows_per_second"]) == (0, 2, 2, 0.0)
    assert facts["at"].endswith("Z")
    assert facts["seconds"] > 0


def test_a_stream_ends_after_the_micro_batch_that_is_under_way(job: Job) -> None:
    slow = "coalesce(java_method('java.lang.Thread', 'sleep', 1500L), '-') <> ''"
    job.add_file(1)
    job.add_file(2)
    control = StreamControl()

    def stop() -> None:
        wait_until(lambda: any(job.folder.glob(".orchestrator-*")), 60, "a micro-batch is being written")
        control.stopping.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    (result,) = job.run(
        STREAMING + TABLES + f"INSERT INTO out SELECT id FROM orders WHERE {slow}", control=control
    )
    stopper.join()
    assert (result["rows"], result["batches"]) == (1, 1)
    assert (job.found(), job.counted()) == ([1], {"0"})


def test_available_now_ends_early_and_leaves_the_rest_to_the_next_run(job: Job) -> None:
    for number in range(8):
        job.add_file(number)
    script = (
        NOW
        + COPY
        + "CREATE TABLE more (id BIGINT) USING json OPTIONS (path 'more');"
        + ("INSERT INTO more SELECT id FROM orders;")
    )
    first, second = job.run(script, has_rows(out=1))
    assert 0 < first["rows"] < 8
    assert (second["rows"], second["batches"]) == (0, 0)
    assert job.found() == list(range(first["rows"]))
    assert len(job.counted()) == first["batches"]
    assert [each["rows"] for each in job.run(script)] == [8 - first["rows"], 8]
    assert job.found() == job.found("more") == list(range(8))


def test_a_query_that_fails_ends_the_others_and_the_job_at_its_insert(job: Job) -> None:
    script = (
        STREAMING
        + TABLES
        + (
            "CREATE TABLE bad (id BIGINT) USING json OPTIONS (path 'bad');\n"
            "INSERT INTO out SELECT id FROM orders;\n"
            "INSERT INTO bad SELECT CAST(concat('x', id) AS BIGINT) FROM orders;"
        )
    )
    job.add_file(1)
    with pytest.raises(SqlError, match="CAST_INVALID_INPUT") as failed:
        job.run(script)
    assert failed.value.line == 7
    assert job.found() in ([], [1])
    assert not job.found("bad")
    assert not job.spark.streams.active


def test_an_insert_that_cannot_start_ends_those_before_it(job: Job) -> None:
    job.add_file(1)
    with pytest.raises(SqlError, match="COLUMN") as failed:
        job.run(STREAMING + COPY + "\nINSERT INTO out SELECT idd FROM orders;")
    assert failed.value.line == 6
    assert job.found() in ([], [1])


TICKS = """CREATE TABLE ticks (value INT, `timestamp` TIMESTAMP) USING rate OPTIONS (rows_per_second 20);
CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
INSERT INTO out SELECT value FROM ticks;"""


def test_connector_rate_makes_rows_from_its_first_start_on(job: Job) -> None:
    job.run(STREAMING + TICKS, has_rows(out=20))
    count = len(job.found())
    assert count >= 20

    def read_on() -> dict[str, Any]:
        (result,) = job.run(TICKS)  # the mode is available-now
        return result

    # Rows are made for whole seconds, so a run within the second that was read last finds none.
    result = wait_until(lambda: (found := read_on())["batches"] and found, 60, "a second has passed")
    assert result["batches"] == 1
    assert job.found() == list(range(count + result["rows"]))


def test_a_look_at_rows_without_an_end_has_an_end(job: Job) -> None:
    found = preview(job.spark, plan_of(TICKS, job.folder), "ticks", 3, 40)
    assert [row[0] for row in found["rows"]] == ["0", "1", "2"]
    assert [each["type"] for each in found["columns"]] == ["int", "timestamp"]


def test_tables_that_a_mode_cannot_read_may_be_declared(job: Job) -> None:
    job.add_file(1)
    unread = "CREATE TABLE ticks (value BIGINT) USING rate;\nCREATE TABLE shown USING print;\n"
    (result,) = job.run(unread + "INSERT INTO shown SELECT 1")
    assert result["rows"] == 1
    undeclared = "CREATE TABLE other USING json OPTIONS (path 'other');\n"
    (result,) = job.run(f"{NOW}{undeclared}{COPY}")
    assert result["rows"] == 1


@pytest.mark.parametrize("point", ["before the write", "within the write", "after the write"])
def test_a_killed_driver_loses_and_repeats_no_row(job: Job, point: str) -> None:
    for number in range(3):
        job.add_file(*range(number * 3, number * 3 + 3))
    command = [sys.executable, "-m", "tests.stream_driver", str(job.folder), "1", point]
    killed = subprocess.run(
        command, env=program_environment(), input=STREAMING + COPY, text=True, timeout=240, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert job.found() != list(range(9))
    rows = 9 - 3
    job.run(STREAMING + COPY, has_rows(out=rows))
    assert job.found() == list(range(9))
