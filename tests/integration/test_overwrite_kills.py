"""A driver that replaces a folder is killed by -9: old or new rows are read, after a retry the new ones."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.execution import execute
from tests.dying_files import as_objects
from tests.overwrite_driver import plan_of
from tests.sampling import sample
from tests.spark_programs import program_environment

pytestmark = [pytest.mark.spark, pytest.mark.drawn("kills of writers"), pytest.mark.timeout(300)]

HEAD = """CREATE TABLE t (id BIGINT, a BIGINT) USING parquet OPTIONS (path 'file://{}/out', partition_by 'a');
CREATE TABLE p USING print;
"""
OVERWRITE = "INSERT OVERWRITE t SELECT id, id % 3 AS a FROM range({}, {}, 1, 2);"
READ = "INSERT INTO p SELECT sum(id) FROM t"
OLD, NEW = sum(range(10)), sum(range(100, 120))
# The changes behind which it dies. Object by object: 2 of the record, 3 folders, 12 files, 2 removals.
KILLS = [*(("exchange", changes) for changes in range(4)), *(("objects", changes) for changes in range(19))]


@pytest.mark.parametrize(("kind", "changes"), sample(KILLS, 1, "kills of INSERT OVERWRITE"))
def test_a_killed_driver_leaves_old_or_new_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, changes: int
) -> None:
    as_objects(monkeypatch, kind)

    def run(script: str, attempt: int = 1) -> list[list[str | None]]:
        plan = plan_of(HEAD.format(tmp_path) + script, tmp_path)
        results = execute(spark, plan, lambda _: None, Writer("run", attempt))
        return list(results[-1]["preview"])

    run(OVERWRITE.format(0, 10))
    killed = subprocess.run(
        [sys.executable, "-m", "tests.overwrite_driver", str(tmp_path), kind, str(changes)],
        env=program_environment(),
        input=HEAD.format(tmp_path) + OVERWRITE.format(100, 120),
        text=True,
        timeout=240,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert run(READ) in ([[str(OLD)]], [[str(NEW)]])
    run(OVERWRITE.format(100, 120), attempt=2)
    assert run(READ) == [[str(NEW)]]
    assert [each.name for each in tmp_path.iterdir() if not each.name.endswith(".crc")] == ["out"]
