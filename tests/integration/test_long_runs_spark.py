"""A stream in a real Spark driver: it is stopped after a micro-batch, and the next run continues."""

from pathlib import Path
from typing import Any

from pyarrow import parquet  # type: ignore[import-untyped]  # pyarrow publishes no types

from orchestrator.compose import DRIVER_MAIN
from orchestrator.model.definition import build_definition
from orchestrator.model.states import Status
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import Deployment
from tests.waiting import wait_until

SCRIPT = """
SET job.mode = 'streaming';
SET job.trigger = '500 ms';
CREATE TABLE ticks (`timestamp` TIMESTAMP, value BIGINT) USING rate OPTIONS (rows_per_second 20);
CREATE TABLE sold (value BIGINT) USING parquet OPTIONS (path 'sold');
INSERT INTO sold SELECT value FROM ticks;
"""
WAIT_S = 120


def sold(folder: Path) -> list[int]:
    return sorted(
        value
        for file in (folder / "sold").glob("*.parquet")
        for value in parquet.read_table(file)["value"].to_pylist()
    )


def test_a_stream_is_stopped_after_its_micro_batch_and_the_next_run_continues(
    deployment: Deployment, tmp_path: Path
) -> None:
    submits = SparkSubmits(deployment.settings.state_dir)
    deployment.worker(runner=LocalRunner(submits, driver_main=DRIVER_MAIN), hour_seconds=2.0)
    document = {
        "name": "ticks",
        "script": SCRIPT,
        "directory": str(tmp_path),
        "spark": {"master": "local[1]", "conf": {"spark.ui.enabled": "false"}},
    }

    def run() -> dict[str, Any]:
        """Run until some micro-batches have written rows; the entry of the run in the history."""
        job_id = deployment.client.submit(build_definition(document, "test")).id

        def has_written() -> bool:
            progress = deployment.client.progress(deployment.client.get(job_id)) or {}
            return bool(progress.get("streamed", {}).get("batches", 0) >= 3)

        wait_until(has_written, WAIT_S, "three micro-batches have ended")
        deployment.client.kill(job_id, graceful=True)
        detail = deployment.wait(job_id, WAIT_S)
        assert (detail.job.status, detail.job.mode) == (Status.SUCCESS, "streaming")
        assert [act.detail for act in detail.job.actions] == ["graceful"]
        return dict(deployment.client.history("ticks")[-1])

    first = run()
    rows = sold(tmp_path)
    assert rows == list(range(len(rows)))
    assert first["total_rows"] == len(rows)
    second = run()
    rows = sold(tmp_path)
    assert rows == list(range(len(rows)))  # no row is missing and none is there twice
    assert first["total_rows"] + second["total_rows"] == len(rows)
    entries = deployment.client.history("ticks")
    assert sum(entry["rows"] for entry in entries) == len(rows)
    assert any("hour" in entry for entry in entries)
