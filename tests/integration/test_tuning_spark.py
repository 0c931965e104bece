"""Tuning with real Spark: memory falls while all goes well, and rises after an attempt was out of memory."""

import pytest

from orchestrator.compose import DRIVER_MAIN
from orchestrator.model.definition import Definition
from orchestrator.model.states import Status
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import Deployment, python_job
from tests.tuning_support import HEAP, NAME, OVERHEAD, tuning_of

pytestmark = pytest.mark.spark

WAIT_S = 120
SPARK = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()\n"
SMALL = SPARK + "assert spark.range(1_000_000).groupBy().sum('id').collect()[0][0] > 0"
# With 512 MiB there is no room for it beside Spark itself, with 768 MiB there is.
LARGE = SPARK + "spark.sparkContext._jvm.java.nio.ByteBuffer.allocate(420 * 2**20)"


def job(program: str, memory: str, mode: str) -> Definition:
    spark = {
        "master": "local[1]",
        "driver": {"memory": memory},
        "start": "fast",
        "conf": {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"},
    }
    retry = {"attempts": 3, "delay": "0s"}
    return python_job(program, name=NAME, spark=spark, retry=retry, tuning={"mode": mode})


def mib(text: str) -> float:
    return float(text[:-1]) * (1024 if text.endswith("g") else 1)


@pytest.fixture
def working(deployment: Deployment) -> Deployment:
    """A deployment with a worker whose drivers are those of Spark."""
    runner = LocalRunner(SparkSubmits(deployment.settings.state_dir), driver_main=DRIVER_MAIN)
    deployment.worker(runner=runner)
    return deployment


def test_the_memory_of_a_job_falls_from_run_to_run_and_spark_gets_what_was_decided(
    working: Deployment,
) -> None:
    for _ in range(3):
        detail = working.wait(working.client.submit(job(SMALL, "2g", "apply")).id, WAIT_S)
        assert detail.job.status is Status.SUCCESS, detail.job.error
    runs = working.client.history(NAME)
    heaps = [mib(run["settings"][HEAP]) for run in runs]
    assert heaps[0] == 2048
    assert heaps[0] > heaps[1] > heaps[2] >= 512
    limits = [run["metrics"]["driver"]["heap_limit_bytes"] / 2**20 for run in runs]
    assert limits == pytest.approx(heaps, rel=0.1), "of the JVM itself"
    assert {run["settings"][OVERHEAD] for run in runs[1:]} <= {"384m"}
    decided = [mib(each.choices["driver.memory"]["after"]) for each in tuning_of(working).decisions]
    assert decided[-2:] == heaps[1:]


@pytest.mark.parametrize("mode", ["suggest", "apply"])
def test_the_attempt_after_one_out_of_memory_succeeds_with_more(working: Deployment, mode: str) -> None:
    detail = working.wait(working.client.submit(job(LARGE, "512m", mode)).id, WAIT_S)
    assert detail.job.status is Status.SUCCESS, detail.job.error
    assert detail.job.attempt == 2
    first, second = working.client.history(NAME)
    assert (first["state"], first["class"], first["short_of"]) == ("failed", "memory", "driver.heap")
    assert (first["settings"][HEAP], second["settings"][HEAP]) == ("512m", "768m")
    assert (detail.job.tuned or {})[HEAP] == "768m"
