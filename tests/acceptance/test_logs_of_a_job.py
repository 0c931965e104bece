"""The output of a running job is followed on another terminal, through the worker and Elasticsearch."""

import json

import pytest

from tests.acceptance.support import COMMAND_TIMEOUT_S, SPARK_TIMEOUT_S, Shell
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]

PROGRAM = """
from pyspark.sql import SparkSession

def fails(rows):
    raise ValueError(f"row 7 is bad; password=hunter2 and {key}")

key = SparkSession.builder.getOrCreate().conf.get("spark.hadoop.fs.s3a.secret.key")
print("counted", SparkSession.builder.getOrCreate().range(10).count())
SparkSession.builder.getOrCreate().range(1).foreachPartition(fails)
"""


def test_the_output_of_a_running_job_is_followed_and_found_afterwards(
    shared_shell: Shell, log_alias: str, elasticsearch_url: str
) -> None:
    shell = shared_shell
    shell.environment |= {"ORCHESTRATOR_LOGS__URL": elasticsearch_url, "ORCHESTRATOR_LOGS__ALIAS": log_alias}
    worker = shell.start("worker")
    worker.wait_for_words("slot", COMMAND_TIMEOUT_S)
    follower = shell.start("logs", "tail", "-f", "--job", "counts")
    job = shell.python_job("counts", PROGRAM, {"spark.hadoop.fs.s3a.secret.key": "nothing-like-one"})
    assert shell.type("job", "submit", str(job), "--id", "counts").code == 0
    followed = shell.start("job", "logs", "counts", "--follow", "--stream", "stdout")

    assert followed.wait(SPARK_TIMEOUT_S).code == 0, followed.stderr
    assert followed.stdout == "counted 10\n"
    end = "counts fail -> finish ERROR_FAIL"
    wait_until(lambda: end in follower.stdout, COMMAND_TIMEOUT_S, "the end of the job is seen")
    follower.press_ctrl_c()
    assert follower.wait().code == 130
    lines = follower.stdout.splitlines()
    assert [line for line in lines if "counted 10" in line] == ["out   | counted 10"], "each record once"
    assert lines.index("out   | counted 10") > next(
        n for n, line in enumerate(lines) if "accept -> running" in line
    )

    found = shell.type("job", "logs", "counts", "--grep", "row 7 is bad", "-o", "jsonl")
    documents = [json.loads(line) for line in found.stdout.splitlines()]
    assert documents, found.stderr
    assert {document["job.attempt"] for document in documents} == {1}
    assert any("fails" in document["error.stack_trace"] for document in documents), "a trace is one document"
    assert "row 7 is bad; password=*** and ***" in found.stdout
    for secret in ("hunter2", "nothing-like-one"):
        assert secret not in follower.stdout + found.stdout, "records in a spool or an index are masked"

    worker.terminate()
    assert worker.wait().code == 0
    shell.environment |= {"ORCHESTRATOR_ROOT": f"{shell.environment['ORCHESTRATOR_ROOT']}-other"}
    gone = shell.type("job", "show", "counts", "-o", "json").json()
    assert (gone["id"], gone["status"], gone["attempt"]) == ("counts", "ERROR_FAIL", 1)
