"""Logs of workers about jobs: the history outlives ZooKeeper, and trouble with logs is reported."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from loguru import logger

from orchestrator.cli.job.archived import archived_jobs
from orchestrator.client.client import Client
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.history.log_records import TRANSITION
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.reading.query import LogQuery, LogRecord
from orchestrator.logs.reading.reader import SpooledLogs
from orchestrator.logs.settings import LogSettings
from orchestrator.metrics.registry import Metrics
from orchestrator.model.states import Status
from spark_runner.runners.base import Submission, SubmitRequest
from tests.jobs_support import Deployment
from tests.waiting import wait_until

ENDS_S = 60
COUNTED = "orchestrator_log_records_total"


@pytest.fixture
def pipeline(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Iterator[LogPipeline]:
    """The logs of this process in the state directory of the deployment."""
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(deployment.settings.state_dir))
    with LogPipeline(LogSettings(), deployment.settings.state_dir / "logs", "test") as made:
        yield made


def spooled(state_dir: Path) -> SpooledLogs:
    return SpooledLogs(state_dir / "logs" / "spool")


def entries_of(state_dir: Path, query: LogQuery, count: int) -> list[LogRecord]:
    """Wait for `count` entries: a worker logs a transition after its commit, so `wait` may be faster."""
    logs, found = spooled(state_dir), list[LogRecord]()

    def has_count() -> bool:
        found.extend(logs.new(query))
        return len(found) >= count

    wait_until(has_count, ENDS_S, f"{count} entries are logged")
    return found


def test_each_change_of_a_job_is_a_document_with_its_state(
    deployment: Deployment, pipeline: LogPipeline
) -> None:
    assert pipeline.trouble == ""
    deployment.worker()
    job_id = deployment.submit("print(1)")
    deployment.wait(job_id)
    query = LogQuery.of(job_id=job_id, event_action=TRANSITION)
    found = entries_of(deployment.settings.state_dir, query, 3)
    assert [entry.text("job.queue") for entry in found] == ["running", "success", "finish"]
    last = found[-1].document
    assert last["job.status"] == "SUCCESS"
    assert last["job.attempt"] == 1
    assert last["job.state"]["times"].keys() == {"accept", "running", "success", "finish"}
    assert last["job.run_key"] == deployment.client.detail(job_id).run_key


def test_a_job_that_is_gone_from_zookeeper_is_shown_and_listed(
    deployment: Deployment,
    pipeline: LogPipeline,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert pipeline.spool is not None
    deployment.worker()
    failing, good = (
        deployment.submit("raise ValueError('no')", retry={"attempts": 1}),
        deployment.submit("print(1)"),
    )
    for job_id in (failing, good):
        deployment.wait(job_id)
        deployment.client.remove(job_id)
        entries_of(deployment.settings.state_dir, LogQuery.of(job_id=job_id, event_action=TRANSITION), 3)
    (shown,) = archived_jobs(job_id=failing)
    assert (shown.id, shown.status) == (failing, Status.ERROR_FAIL)
    assert shown.error is not None
    assert "no" in shown.error.message
    assert {job.id for job in archived_jobs()} == {failing, good}
    assert [job.id for job in archived_jobs(statuses=[Status.SUCCESS])] == [good]
    assert archived_jobs(names=["another"]) == []
    assert archived_jobs(since=datetime.now(UTC)) == []
    monkeypatch.setattr("orchestrator.cli.job.archived._MAX_RECORDS", 1)
    capsys.readouterr()
    assert len(archived_jobs()) == 1
    assert "only the last 1 records were read, from 20" in capsys.readouterr().err
    archived_jobs(quiet=True)
    assert capsys.readouterr().err == ""


def test_log_records_of_a_worker_that_handles_a_job_have_the_id_of_the_job(
    deployment: Deployment, pipeline: LogPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pipeline.spool is not None

    runner = deployment.runner()
    submit = runner.submit

    def speaking(request: SubmitRequest) -> Submission:
        logger.info("something about it")
        return submit(request)

    monkeypatch.setattr(runner, "submit", speaking)
    deployment.worker(runner=runner)
    job_id = deployment.submit("print(1)")
    deployment.wait(job_id)
    found = spooled(deployment.settings.state_dir).new(LogQuery.of(job_id=job_id))
    assert "something about it" in [entry.text("message") for entry in found]


def test_the_doctor_tells_whose_logs_are_not_shipped(deployment: Deployment, tmp_path: Path) -> None:
    settings = LogSettings(url="https://127.0.0.1:9", ca_file=tmp_path / "none.pem")
    with LogPipeline(settings, tmp_path / "logs", "test") as pipeline:
        assert "none.pem" in pipeline.trouble
        deployment.worker(logs=pipeline)
        job_id = deployment.submit("print(1)")
        assert deployment.wait(job_id).job.status is Status.SUCCESS, "the job runs all the same"
        found = wait_until(lambda: _about_logs(deployment.client), ENDS_S, "the worker is announced")
        assert "none.pem" in found[0].what
        query = LogQuery.of(job_id=job_id, event_action=TRANSITION)
        assert len(entries_of(tmp_path, query, 3)) == 3, "they wait"


def _about_logs(client: Client) -> list[Finding]:
    return [finding for finding in client.doctor.check() if finding.kind is FindingKind.LOGS_NOT_SHIPPED]


def test_an_unwritable_spool_is_reported_in_one_sentence_and_work_continues(
    deployment: Deployment, tmp_path: Path
) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("a file")
    logged = list[str]()
    handler = logger.add(lambda message: logged.append(message.record["message"]), level="WARNING")
    with LogPipeline(LogSettings(dir=occupied), tmp_path, "test") as pipeline:
        deployment.worker(logs=pipeline)
        assert deployment.wait(deployment.submit("print(1)")).job.status is Status.SUCCESS
    logger.remove(handler)
    assert [words for words in logged if "occupied" in words] == [pipeline.trouble]


def test_the_fate_of_records_is_counted_for_prometheus(
    tmp_path: Path, log_alias: str, elasticsearch_url: str
) -> None:
    metrics = Metrics()
    assert metrics.registry.get_sample_value(COUNTED, {"outcome": "created"}) is None, "no process ships"
    settings = LogSettings(url=elasticsearch_url, alias=log_alias)
    with LogPipeline(settings, tmp_path, "test") as pipeline:
        metrics.ask_logs(pipeline.status)
        logger.info("one")

        def created() -> float | None:
            return metrics.registry.get_sample_value(COUNTED, {"outcome": "created"})

        wait_until(lambda: created() == 1.0, ENDS_S, "it is delivered")
        assert metrics.registry.get_sample_value("orchestrator_logs_waiting") == 0.0
