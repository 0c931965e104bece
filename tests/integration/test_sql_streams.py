# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
"""Mode available-now: each run reads the new rows alone, and a repeated micro-batch replaces its rows."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.checkpoints import Checkpoint
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.sampling import sample
from tests.spark_programs import program_environment
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

Run = Callable[..., list[dict[str, Any]]]
TABLES = """SET job.mode = 'available-now';
CREATE TABLE orders (id BIGINT, kind STRING) USING json OPTIONS (path 'in', max_files_per_trigger 1);
CREATE TABLE kinds (kind STRING, label STRING) USING inline OPTIONS (rows '[["a", "first"]]');
CREATE TABLE out (id BIGINT, label STRING) USING {} OPTIONS (path 'out');
"""
SCRIPT = TABLES + "INSERT INTO out SELECT id, label FROM orders LEFT JOIN kinds USING (kind);"


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Run:
    def run_script(text: str = SCRIPT.format("json"), writer: Writer | None = None) -> list[dict[str, Any]]:
        return execute(spark, plan_of(text, tmp_path), lambda _: None, writer)

    return run_script


def add_file(folder: Path, *ids: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    lines = [json.dumps({"id": each, "kind": "a" if each % 2 else "b"}) for each in ids]
    file = folder / f"{ids[0]}.json"
    file.write_text("\n".join(lines))
    os.utime(file, (1_700_000_000 + ids[0], 1_700_000_000 + ids[0]))  # Spark reads the oldest first
    file.rename(folder / "in" / file.name)


def found(folder: Path) -> list[int]:
    return sorted(
        json.loads(line)["id"]
        for file in (folder / "out").glob("part-*")
        for line in file.read_text().splitlines()
    )


def test_each_run_adds_the_rows_of_the_files_that_are_new(run: Run, tmp_path: Path) -> None:
    add_file(tmp_path, 1, 2)
    add_file(tmp_path, 3)
    first = run()[0]
    assert (first["rows"], first["target"], len(first["preview"])) == (3, "out", 2)
    assert found(tmp_path) == [1, 2, 3]
    assert len(list((tmp_path / "out").glob("part-*"))) == 2, "one file per micro-batch"
    assert run()[0]["rows"] == 0
    add_file(tmp_path, 4)
    assert (
        run(SCRIPT.format("json").replace("LEFT JOIN", "/* spaces do not count */\n  LEFT  JOIN"))[0]["rows"]
        == 1
    )
    assert found(tmp_path) == [1, 2, 3, 4]


def test_a_row_that_fails_ends_the_job_at_its_insert_and_its_batch_is_read_again(
    run: Run, tmp_path: Path
) -> None:
    script = TABLES.format("json") + "INSERT INTO out SELECT id, CAST(kind AS INT) FROM orders;"
    add_file(tmp_path, 1)
    with pytest.raises(SqlError, match="CAST_INVALID_INPUT") as refused:
        run(script)
    assert refused.value.line == 5
    (tmp_path / "in" / "1.json").write_text('{"id": 1, "kind": "7"}')
    assert run(script)[0]["rows"] == 1
    assert found(tmp_path) == [1]


def test_a_changed_query_does_not_continue(run: Run, tmp_path: Path) -> None:
    add_file(tmp_path, 1)
    run()
    with pytest.raises(SqlError, match=r"are not those that its checkpoint .* counts") as refused:
        run(SCRIPT.format("json").replace("SELECT id", "SELECT id + 1"))
    assert (refused.value.line, found(tmp_path)) == (5, [1])


def test_a_second_running_job_is_refused(run: Run, spark: SparkSession, tmp_path: Path) -> None:
    add_file(tmp_path, 1)
    run()
    place = tmp_path / "checkpoints" / "job" / "out"
    own = json.loads((place / "orchestrator.json").read_text())["fingerprint"]
    with (
        Checkpoint(spark, f"file:{place}").opened(own),
        pytest.raises(SqlError, match="another running job uses the checkpoint"),
    ):
        run()


def test_a_watermark_ends_windows(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    script = """SET job.mode = 'available-now';
    CREATE TABLE s (n INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '10' SECOND)
      USING json OPTIONS (path 'in', max_files_per_trigger 1);
    CREATE TABLE out (id BIGINT) USING json OPTIONS (path 'out');
    INSERT INTO out SELECT sum(n) FROM s GROUP BY window(ts, '1 minute');
    """
    for number, minute in enumerate((0, 0, 5)):
        file = tmp_path / "in" / f"{number}.json"
        file.write_text(json.dumps({"n": number + 1, "ts": f"2026-01-01T00:0{minute}:01"}))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
    run(script)
    assert found(tmp_path) == [3], "the last window is still open"


KILLS = [
    (batch, point)
    for batch in (0, 1)
    for point in ("before the write", "within the write", "after the write")
]


@pytest.mark.parametrize(("batch", "point"), sample(KILLS, 3, "kills of streams"))
def test_a_killed_driver_loses_and_repeats_no_row(run: Run, tmp_path: Path, batch: int, point: str) -> None:
    for number in range(3):
        add_file(tmp_path, *range(number * 3, number * 3 + 3))
    command = [sys.executable, "-m", "tests.stream_driver", str(tmp_path), str(batch), point]
    killed = subprocess.run(
        command, env=program_environment(), input=SCRIPT.format("json"), text=True, timeout=240, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert found(tmp_path) != list(range(9))
    run()
    assert found(tmp_path) == list(range(9))


def test_without_a_folder_for_its_progress_a_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    add_file(tmp_path, 1)
    plan = compile_script(SCRIPT.format("json"), file="s.sql", base_dir=str(tmp_path), variables={})
    with pytest.raises(SqlError, match="an operator can set `checkpoints`"):
        execute(spark, plan, lambda _: None)
