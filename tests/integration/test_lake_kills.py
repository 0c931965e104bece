"""Drivers that are killed while they write tables of lakes: each write has its effect once."""

# ruff: noqa: S608 - the test builds the scripts; nothing in them comes from outside
import itertools
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.execution import execute
from tests.catalog_support import ends, source
from tests.lake_support import KINDS, table, target
from tests.sampling import chance, sample
from tests.spark_programs import program_environment
from tests.stream_driver import plan_of

pytestmark = [pytest.mark.campaign, pytest.mark.drawn("kills of writers"), pytest.mark.timeout(600)]

FILES = 6
WRITES = 4
CASES = list(itertools.product(KINDS, ("batch", "stream"), ("behind", "random"), range(13)))


def batch(name: str) -> str:
    return f"""INSERT INTO {name} SELECT CAST(id AS INT), 0L FROM range(0, 2000, 1, 4);
    MERGE INTO {name} t USING (SELECT CAST(id AS INT) AS id FROM range(1000, 3000)) s ON t.id = s.id
      WHEN MATCHED THEN UPDATE SET n = t.n + 1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 0L);
    DELETE FROM {name} WHERE id % 10 = 0;
    INSERT INTO {name} SELECT CAST(id AS INT), 5L FROM range(0, 300, 10, 2);"""


def stream(name: str, folder: Path) -> str:
    for number in range(FILES):
        made = source(folder, 10 * number + 1, 10 * number + 2)
    return f"{made}INSERT INTO {name} SELECT id, 1L FROM src;"


@pytest.mark.parametrize(
    "case", sample(CASES, 2, "kills of lakes"), ids=lambda case: "-".join(map(str, case))
)
def test_a_killed_driver_leaves_no_row_missing_and_none_doubled(
    lake_spark: SparkSession, tmp_path: Path, case: tuple[str, str, str, int]
) -> None:
    lake, mode, point, _ = case
    name, random = target(lake, tmp_path), chance(f"kill of a lake {case}")
    head = "" if mode == "batch" else "SET job.mode = 'available-now';\n"
    script = head + table(lake, tmp_path) + (batch(name) if mode == "batch" else stream(name, tmp_path))
    write, seconds = (
        random.randrange(1, WRITES + 1),
        0.0 if point == "behind" else random.uniform(0, 2),
    )
    killed = subprocess.Popen(
        [sys.executable, "-m", "tests.lake_driver", str(tmp_path), str(write), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=program_environment(),
        text=True,
        start_new_session=True,
    )
    killed.communicate(script, timeout=300)
    assert killed.returncode == -signal.SIGKILL or (seconds and killed.returncode == 0)
    ends(killed.pid)
    execute(lake_spark, plan_of(script, tmp_path), lambda _: None, Writer("run", 2))
    found = f"(SELECT struct(count(*), sum(id), sum(n)) FROM {name})"
    if mode == "batch":
        kept = [each for each in range(3000) if each % 10]
        expected = (len(kept) + 30, sum(kept) + sum(range(0, 300, 10)), 900 + 150)
    else:
        ids = [10 * each + more for each in range(FILES) for more in (1, 2)]
        expected = len(ids), sum(ids), len(ids)
    shown = f"{table(lake, tmp_path)}ASSERT {found} = struct({', '.join(f'{each}L' for each in expected)})"
    execute(lake_spark, plan_of(shown, tmp_path), lambda _: None)
