"""The counts of rows that do not fit are exact when Spark runs slow tasks a second time, beside the first."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.standalone import HOST, SMALL_APPLICATION, START_TIMEOUT_S, StandaloneCluster
from tests.spark_programs import program_environment
from tests.waiting import wait_until

pytestmark = [pytest.mark.standalone, pytest.mark.drawn("jobs on clusters"), pytest.mark.timeout(600)]

OTHER_HOST = "127.0.0.2"  # Spark runs no second task on the host of the first one
SPECULATION = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.0",
    "spark.ui.enabled": "false",
}

PROGRAM = """
import json, os, sys, time
from pyspark import TaskContext
from pyspark.sql import SparkSession
from spark_runner.connectors.base import Writer
from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.execution import execute

folder, master, conf = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
builder = SparkSession.builder.master(master)
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()


def is_adult(age):
    if age == 99:  # the last row of its task
        task = TaskContext.get()
        copy = f"{folder}/copies/{task.stageId()}-{task.partitionId()}"
        if task.attemptNumber():
            open(copy, "a").close()
        for _ in range(3000):
            if os.path.exists(copy):
                break
            time.sleep(0.02)
        else:
            raise RuntimeError("Spark has started no copy of a slow task")
    return age is not None and age >= 18  # Spark calls it for damaged records, too


of_run = spark.newSession()
of_run.udf.register("is_adult", is_adult, "boolean")
spark.newSession = lambda: of_run  # the run uses the session that has the function
text = '''
SET job.error.limit.rows = 9;
CREATE TABLE src (age INT, CONSTRAINT adult EXPECT (is_adult(age)) ON VIOLATION QUARANTINE)
USING csv OPTIONS (path 'in');
CREATE TABLE dst (age TINYINT) USING parquet OPTIONS (path 'out');
INSERT OVERWRITE dst SELECT age FROM src;
'''
plan = compile_script(text, file="s.sql", base_dir=folder, variables={})
plan["quarantine"] = f"file:{folder}/bad"
bad = []
execute(spark, plan, lambda _phase: None, Writer("run", 1), bad_rows=bad)
places = [f"{folder}/out", *(each["place"] for each in bad)]
rows = [spark.read.parquet(place).count() for place in places]
print(json.dumps({"bad": bad, "rows": rows}))
spark.stop()
"""


def test_tasks_that_run_twice_at_a_time_count_their_rows_once(tmp_path: Path) -> None:
    for name in ("in", "copies"):
        (tmp_path / name).mkdir()
    (tmp_path / "in" / "a.csv").write_text("age\n30\n5\nx\n300\n", "utf-8")
    (tmp_path / "in" / "b.csv").write_text("age\n7\n40\n400\ny\n99\n", "utf-8")
    cluster = StandaloneCluster(tmp_path / "cluster")
    try:
        cluster.start()
        cluster.start_worker(host=OTHER_HOST)
        wait_until(lambda: cluster.alive_workers() == 2, START_TIMEOUT_S, "two workers")
        conf = json.dumps({**SMALL_APPLICATION, **SPECULATION, "spark.driver.host": HOST})
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), cluster.url, conf]
        ran = subprocess.run(
            command,
            cwd=tmp_path,
            env=program_environment(),
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )
    finally:
        cluster.stop()
    assert ran.returncode == 0, ran.stderr[-5000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    # The counts, the quarantines and the target: a task of each has had a copy.
    assert len(list((tmp_path / "copies").iterdir())) >= 3
    assert found["rows"] == [3, 4, 2]
    assert [(each["rows"], each["quarantined"]) for each in found["bad"]] == [(9, 4), (5, 2)]
