"""A driver is killed around the writes of the quarantine and of the target: after the retry all is exact."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_runner.connectors.base import Writer
from spark_runner.sql.execution.execution import execute
from tests.bad_rows_driver import AFTER, BEFORE, WITHIN, plan_of
from tests.sampling import sample
from tests.spark_programs import program_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.drawn("kills of writers"), pytest.mark.timeout(300)]

# Two writes to the quarantine: of records and rows of the source, and of rows of the INSERT.
SCRIPT = """SET job.error.limit.rows = 9;
CREATE TABLE src (id INT, age INT, CONSTRAINT adult EXPECT (age >= 18) ON VIOLATION QUARANTINE)
  USING csv OPTIONS (path 'in.csv');
CREATE TABLE dst (id INT, age TINYINT) USING parquet OPTIONS (path 'out');
INSERT INTO dst SELECT * FROM src;
"""
NAMED = """SET job.quarantine = rejects;
CREATE TABLE rejects USING parquet OPTIONS (path 'bad');
"""
RAW = "id,age\n1,30\n2,x\n3,5\n4,40\n5,300\n"


@pytest.mark.parametrize(
    ("named", "folder", "point"),
    sample(
        [
            (True, "bad", WITHIN),
            (True, "out", BEFORE),  # between the quarantine and the target
            (True, "out", AFTER),
            (False, "out", WITHIN),
        ],
        2,
        "kills between quarantine and target",
    ),
)
def test_each_row_is_in_its_place_once(
    spark: "SparkSession", tmp_path: Path, folder: str, point: str, *, named: bool
) -> None:
    script = NAMED + SCRIPT if named else SCRIPT
    (tmp_path / "bad").mkdir()
    (tmp_path / "in.csv").write_text(RAW, "utf-8")
    command = [sys.executable, "-m", "tests.bad_rows_driver", str(tmp_path), folder, point, "1"]
    killed = subprocess.run(
        command, env=program_environment(), input=script, text=True, timeout=240, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert any((tmp_path / "bad").rglob("part-*")), "it died behind the first write to the quarantine"
    assert (tmp_path / "out").exists() == (point == AFTER)
    found = list[dict[str, Any]]()
    results = execute(spark, plan_of(script, tmp_path), lambda _: None, Writer("run", 2), bad_rows=found)
    assert [(each["table"].split()[0], each["rows"], each["quarantined"]) for each in found] == [
        ("src", 5, 2),
        ("dst", 3, 1),
    ]
    assert [each["rows"] for each in results] == [2]
    assert sorted(row["id"] for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [1, 4]
    folders = [tmp_path / "bad"] if named else list((tmp_path / "bad").iterdir())
    rows = [row for each in folders for row in spark.read.parquet(str(each)).collect()]
    assert sorted(row["rule"] for row in rows) == ["adult", "cast", "decoding"]
    assert {row["attempt"] for row in rows} == {"2"}
