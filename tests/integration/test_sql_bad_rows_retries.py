"""The counts of rows that do not fit are exact when tasks fail and run again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark_programs import program_environment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

# A session of its own: tasks of a shared local session have no second attempt.
PROGRAM = """
import json, sys
from pyspark import TaskContext
from pyspark.sql import SparkSession
from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[2,2]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)


def is_adult(age):
    if age == 99 and TaskContext.get().attemptNumber() == 0:
        open(f"{folder}/failed", "a").write("x")
        raise RuntimeError("the first attempt of each task fails at its last row")
    return age >= 18


of_run = spark.newSession()
of_run.udf.register("is_adult", is_adult, "boolean")
spark.newSession = lambda: of_run  # the run uses the session that has the function
text = '''
CREATE TABLE src (age INT, CONSTRAINT adult EXPECT (is_adult(age)) ON VIOLATION QUARANTINE)
USING csv OPTIONS (path 'in');
CREATE TABLE dst USING parquet OPTIONS (path 'out');
INSERT INTO dst SELECT age FROM src;
'''
text = f"SET job.mode = '{sys.argv[2]}';" + text
plan = compile_script(text, file="s.sql", base_dir=folder, variables={})
plan["quarantine"] = f"file:{folder}/bad"
plan["checkpoints"] = f"file:{folder}/checkpoints"
bad = []
execute(spark, plan, lambda _phase: None, Writer("run", 1), bad_rows=bad)
rows = [spark.read.parquet(place).count() for place in (f"{folder}/out", bad[0]["place"])]
print(json.dumps({"bad": bad, "rows": rows}))
"""


@pytest.mark.parametrize("mode", ["batch", "available-now"])
def test_tasks_that_fail_once_count_their_rows_once(tmp_path: Path, mode: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("age\n30\n5\n7\n40\n99\n", "utf-8")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), mode]
    ran = subprocess.run(
        command, cwd=tmp_path, env=program_environment(), check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    # A task of the count, of the quarantine and of the target; a first attempt that Spark loses has no mark.
    assert len((tmp_path / "failed").read_text("utf-8")) >= 2
    assert found["rows"] == [3, 2]
    assert [(each["rows"], each["quarantined"]) for each in found["bad"]] == [(5, 2)]
