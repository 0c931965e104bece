"""Streams that go on in later runs: late files, built-in variables, names and options of tables."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.execution import execute
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
