# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Statement sets of modes that stream: one query reads the stream once, and writes all targets."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryProgressEvent

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.analysis import analyse_script
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.execution.stream_control import StreamControl
from spark_runner.sql.execution.triggers import Triggers
from spark_runner.sql.text.errors import SqlError
from tests.sampling import sample
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

NOW = "SET job.mode = 'available-now';\n"
STREAMING = "SET job.mode = 'streaming'; SET job.trigger = '200 ms';\n"
TABLES = """CREATE TABLE orders (id BIGINT, twice AS id * 2) USING json OPTIONS (path 'in', max_files_per_trigger 1);
CREATE TABLE names (id BIGINT, name STRING) USING inline OPTIONS (rows '[[1, "a"], [4, "b"]]');
CREATE VIEW named AS SELECT o.*, name FROM orders o LEFT JOIN names USING (id);
CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
CREATE TABLE more (id BIGINT, name STRING) USING json OPTIONS (path 'more');
CREATE TABLE last (id BIGINT) USING parquet OPTIONS (path 'last');
"""
SET = """EXECUTE STATEMENT SET BEGIN
  INSERT INTO out SELECT id FROM named;
  INSERT INTO more BY NAME SELECT name, twice AS id FROM named WHERE id % 2 = 0;
  INSERT INTO last SELECT id + 100 FROM orders;
END;
"""
ALL = range(9)
Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    def run_script(
        text: str = NOW + TABLES + SET, control: StreamControl | None = None, **added: Any
    ) -> list[dict[str, Any]]:
        plan = {**plan_of(text, tmp_path), **added}
        return execute(spark, plan, lambda _: None, Writer("run"), control=control)

    return run_script


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that Spark has read from sources, by trigger."""
    found = list[int]()
    reported = Triggers.onQueryProgress

    def report(self: Triggers, event: QueryProgressEvent) -> None:
        found.append(event.progress.numInputRows)
        reported(self, event)

    monkeypatch.setattr(Triggers, "onQueryProgress", report)
    return found


def add_files(folder: Path, *ids: int) -> None:
    """Files of three rows each."""
    (folder / "in").mkdir(exist_ok=True)
    for first in ids[::3]:
        file = folder / f"{first}.json"
        file.write_text("\n".join(json.dumps({"id": first + more}) for more in range(3)))
        os.utime(file, (1_700_000_000 + first, 1_700_000_000 + first))  # Spark reads the oldest first
        file.rename(folder / "in" / file.name)


def found(folder: Path, name: str) -> list[Any]:
    rows = [
        json.loads(line) for file in (folder / name).glob("part-*") for line in file.read_text().splitlines()
    ]
    return sorted((row["id"], row["name"]) if "name" in row else row["id"] for row in rows)


def check_targets(spark: SparkSession, folder: Path, ids: range = ALL) -> None:
    assert found(folder, "out") == list(ids)
    rows = [
        json.loads(line)
        for file in (folder / "more").glob("part-*")
        for line in file.read_text().splitlines()
    ]
    expected = [(id_ * 2, "b" if id_ == 4 else None) for id_ in ids if id_ % 2 == 0]
    assert sorted((row["id"], row.get("name")) for row in rows) == expected
    last = [row[0] for row in spark.read.parquet(str(folder / "last")).collect()]
    assert sorted(last) == [id_ + 100 for id_ in ids]


def test_one_query_reads_the_stream_once_and_writes_all_targets(
    run: Run, spark: SparkSession, tmp_path: Path, read: list[int]
) -> None:
    add_files(tmp_path, *ALL)
    results = run()
    check_targets(spark, tmp_path)
    assert [(each["target"], each["rows"], each["batches"], each["line"]) for each in results] == [
        *(("out", 9, 3, 9), ("more", 5, 3, 10), ("last", 9, 3, 11))
    ]
    assert sum(read) == 9
    assert [each.name for each in (tmp_path / "checkpoints" / "job").iterdir()] == ["out,set"]
    add_files(tmp_path, 9, 10, 11)
    assert [each["rows"] for each in run()] == [3, 1, 3]
    check_targets(spark, tmp_path, range(12))
