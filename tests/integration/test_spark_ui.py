"""Spark's pages of a job: while it runs those of its driver, later those of a history server."""

import time
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.job.attempts import ui_of
from orchestrator.compose import DRIVER_MAIN
from orchestrator.config.event_logs import EventLogSettings
from orchestrator.leader.old_event_logs import OldEventLogs
from orchestrator.model.states import Status
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import Deployment
from tests.receiver import receiver
from tests.servers.history_server import HistoryServer, history_server
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400), pytest.mark.usefixtures("process_mark")]

ENDED_S = 180
COUNTS = """
from pyspark.sql import SparkSession
SparkSession.builder.getOrCreate().range(1000).count()
"""
SPARK: dict[str, Any] = {"master": "local[1]", "driver": {"memory": "512m"}}


def with_spark(deployment: Deployment) -> None:
    """Start a worker with real Spark."""
    submits = SparkSubmits(deployment.settings.state_dir)
    deployment.worker(runner=LocalRunner(submits, driver_main=DRIVER_MAIN))


def with_logs(deployment: Deployment, folder: Path, **table: Any) -> None:
    """Start a worker with real Spark, whose pools have event logs in a folder that does not exist yet."""
    logs = EventLogSettings.model_validate({"url": folder.as_uri(), **table})
    deployment.settings = deployment.settings.model_copy(update={"event_logs": {"*": logs}})
    with_spark(deployment)


def page_of(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own server
        return str(answer.read(), "utf-8")


def named(deployment: Deployment, job_id: str) -> object:
    return (deployment.client.detail(job_id).progress or {}).get("application_id")


def waits_in_task(go: Path) -> str:
    """A program whose only task ends when the file exists."""
    return f"""
from pyspark.sql import SparkSession

def wait(row):
    import pathlib, time
    while not pathlib.Path({str(go)!r}).exists():
        time.sleep(0.1)

SparkSession.builder.getOrCreate().sparkContext.parallelize([1], 1).foreach(wait)
"""


def is_read(server: HistoryServer, application_id: str | None) -> bool:
    return application_id in server.applications()


def test_the_history_of_an_ended_job_is_at_the_address_in_its_record_and_its_callback(
    deployment: Deployment, tmp_path: Path
) -> None:
    folder = tmp_path / "made" / "events"
    folder.parent.mkdir()
    folder.mkdir(mode=0o700)
    with history_server(folder, tmp_path / "history") as server, receiver() as there:
        folder.rmdir()  # the worker makes it
        with_logs(deployment, folder, history_server=server.url)
        ids = [
            deployment.submit(COUNTS + end, spark=SPARK, callback={"url": there.url}, retry={"attempts": 1})
            for end in ("", "raise ValueError('no rows')")
        ]
        jobs = [deployment.wait(each, ENDED_S).job for each in ids]
        assert [job.status for job in jobs] == [Status.SUCCESS, Status.ERROR_FAIL]
        for job in jobs:
            assert job.history == f"{server.url}/history/{job.application_id}"
            wait_until(partial(is_read, server, job.application_id), 60, "the server has read its log")
            assert str(job.application_id) in page_of(job.history)
            assert "Completed Stages" in page_of(f"{job.history}/stages/")
        assert {call.body["id"]: call.body["history"] for call in there.requests} == {
            job.id: job.history for job in jobs
        }
    OldEventLogs(deployment.settings.event_logs.values(), lambda: 2**53).step()
    assert list(folder.iterdir()) == [], "the leader knows each name that Spark gives"


@pytest.mark.parametrize(
    ("more", "kills"), [({}, False), ({"spark.ui.killEnabled": "true"}, True)], ids=["default", "with kills"]
)
def test_the_pages_that_a_pool_turns_on_are_on_loopback_and_end_no_stage(
    deployment: Deployment, tmp_path: Path, more: dict[str, str], kills: bool
) -> None:
    pool = {"*": {"conf": {"spark.ui.enabled": "true", **more}}}
    deployment.settings = deployment.settings.model_copy(update={"spark": pool})
    with_spark(deployment)
    go = tmp_path / "go"
    job_id = deployment.submit(waits_in_task(go), spark=SPARK)

    def page() -> str | None:
        detail = deployment.client.detail(job_id)
        return ui_of(detail.attempts, detail.progress or {})

    ui = wait_until(page, ENDED_S, "its page is known")
    assert ui.startswith("http://127.0.0.1:")
    wait_until(lambda: "foreach" in page_of(f"{ui}/jobs/"), 60, "the job is shown")
    assert ("/jobs/job/kill/" in page_of(f"{ui}/jobs/")) is kills
    go.touch()
    detail = deployment.wait(job_id, ENDED_S)
    assert detail.job.status is Status.SUCCESS
    assert ui_of(detail.attempts, detail.progress or {}) is None
    assert detail.job.history is None


def test_a_killed_job_has_a_history_whose_log_stays_for_a_month(
    deployment: Deployment, tmp_path: Path
) -> None:
    folder = tmp_path / "events"
    with_logs(deployment, folder, retention=60)
    job_id = deployment.submit(waits_in_task(tmp_path / "go"), spark=SPARK)
    wait_until(lambda: named(deployment, job_id), ENDED_S, "its application is known")
    deployment.client.kill(job_id)
    job = deployment.wait(job_id, ENDED_S).job
    assert job.status is Status.KILL
    (log,) = folder.iterdir()
    assert job.history == log.as_uri()
    # A driver that is killed without notice leaves its log like that.
    (status,) = log.glob("appstatus_*")
    if status.suffix != ".inprogress":
        status.rename(log / f"{status.name}.inprogress")
    for days, left in ((29, [log]), (31, [])):
        later = round(time.time() + days * 86_400) * 1000
        OldEventLogs(deployment.settings.event_logs.values(), partial(int, later)).step()
        assert list(folder.iterdir()) == left


def test_a_program_that_starts_spark_twice_has_the_log_of_the_second(
    deployment: Deployment, tmp_path: Path
) -> None:
    with_logs(deployment, tmp_path / "events")
    twice = COUNTS + "SparkSession.getActiveSession().stop()" + COUNTS
    job = deployment.wait(deployment.submit(twice, spark=SPARK), ENDED_S).job
    assert job.status is Status.SUCCESS
    (log,) = (tmp_path / "events").iterdir()
    assert log.name == f"eventlog_v2_{job.application_id}"


def test_a_folder_of_event_logs_that_is_missing_is_named_with_the_remedy(deployment: Deployment) -> None:
    with_spark(deployment)
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": "file:///missing/events"}
    job = deployment.wait(deployment.submit(COUNTS, spark={**SPARK, "conf": conf}), ENDED_S).job
    assert job.error is not None
    assert job.error.error_class == "definition"
    assert job.error.message.startswith(
        "Spark cannot write its event log: java.io.FileNotFoundException: File file:/missing/events does not"
    )
