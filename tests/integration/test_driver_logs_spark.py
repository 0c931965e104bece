"""The output of a real Spark driver, as documents."""

from typing import Any

import pytest

from orchestrator.compose import DRIVER_MAIN
from orchestrator.driver_logs.collector import DriverLogs
from orchestrator.logs.record.document import Days
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.spool.writer import Spool
from orchestrator.model.states import Status
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.driver_logs_support import documents_in, is_collected
from tests.jobs_support import Deployment
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240), pytest.mark.usefixtures("process_mark")]

PROGRAM = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
print("counted", spark.range(1000).count())
print("ERROR a word of warning", file=sys.stderr)

def fails(row):
    raise ValueError(f"row {row.id} is bad")

try:
    spark.range(1, 2, 1, 1).rdd.foreach(fails)
except Exception as error:
    print("caught", flush=True)
raise LookupError("no rows today")
"""


def test_lines_traces_and_events_of_a_driver_are_documents(deployment: Deployment) -> None:
    state_dir = deployment.settings.state_dir
    spool = Spool(state_dir / "spool")
    logs = DriverLogs(state_dir, spool, Days("logs"), Redactor())
    logs.start()
    try:
        deployment.worker(runner=LocalRunner(SparkSubmits(state_dir), driver_main=DRIVER_MAIN))
        spark = {"master": "local[1]", "driver": {"memory": "512m"}}
        job_id = deployment.submit(PROGRAM, spark=spark, retry={"attempts": 1})
        detail = deployment.wait(job_id, timeout=180)
        (directory,) = (state_dir / "runs").glob("*/*")
        wait_until(lambda: is_collected(directory), 20, "all of it")
    finally:
        logs.stop()
        spool.close()
    found = {stream: documents_in(state_dir / "spool", stream) for stream in ("stdout", "stderr", "spark")}

    assert detail.job.status is Status.ERROR_FAIL
    printed = [document for document in found["stdout"] if "counted" in document["message"]]
    assert [document["message"] for document in printed] == ["counted 1000"]
    expected = {
        "log.stream": "stdout",
        "log.level": "info",
        "event.dataset": "spark.driver",
        "job.id": job_id,
        "job.name": detail.job.name,
        "job.run_key": detail.run_key,
        "job.attempt": 1,
        "service.name": "spark",
        "spark.executor_id": "driver",
    }
    assert {name: printed[0][name] for name in expected} == expected
    assert printed[0]["spark.application_id"] == detail.attempts[0]["application_id"]

    said = {document["message"]: document for document in found["stderr"]}
    assert said["ERROR a word of warning"]["log.level"] == "error"
    raised = said["LookupError: no rows today"]
    assert (raised["error.type"], raised["error.message"]) == ("LookupError", "no rows today")
    assert raised["error.stack_trace"].startswith("Traceback (most recent call last):\n")

    events: list[dict[str, Any]] = found["spark"]
    version = [event for event in events if "Running Spark version" in event["message"]]
    assert version[0]["log.level"] == "info"
    assert version[0]["log.logger"] == "org.apache.spark.SparkContext"
    failed = [event for event in events if "row 1 is bad" in event.get("error.stack_trace", "")]
    assert failed[0]["log.level"] == "error"
    assert failed[0]["error.type"] == "org.apache.spark.api.python.PythonException"
    assert {"spark.stage_id", "spark.task_id"} <= failed[0].keys()
    assert not [event for event in events if event["message"].startswith("\tat ")]
