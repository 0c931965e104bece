"""Jobs of mode `streaming` whose drivers are stand-ins, see tests/standin_stream_submit.py."""

import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.compose import DRIVER_MAIN
from orchestrator.model.definition import build_definition
from orchestrator.model.plan import compile_program
from orchestrator.worker.worker import Worker
from spark_runner.protocol.attempt import Attempt, AttemptState, attempt_path
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.jobs_support import Deployment
from tests.waiting import wait_until

STAND_IN = (sys.executable, str(Path(__file__).with_name("standin_stream_submit.py")))
SCRIPT = """
SET job.mode = 'available-now';
CREATE TABLE orders (id BIGINT) USING json OPTIONS (path 'orders');
CREATE TABLE sold (id BIGINT) USING json OPTIONS (path 'sold');
INSERT INTO sold SELECT id FROM orders;
"""
WAIT_S = 60


class Streams:
    """Submits streams to a deployment, and changes their behavior by files in their folder."""

    def __init__(self, deployment: Deployment, folder: Path) -> None:
        self.deployment, self.folder = deployment, folder
        self.client = deployment.client
        (folder / "orders").mkdir(parents=True)  # a stream needs the folder that it reads

    def worker(self, state_dir: Path | None = None, **more: Any) -> Worker:
        submits = SparkSubmits(state_dir or self.deployment.settings.state_dir, spark_submit=STAND_IN)
        return self.deployment.worker(runner=LocalRunner(submits, driver_main=DRIVER_MAIN), **more)

    def submit(self, *, mode: str = "streaming", trigger_ms: int = 50, **fields: object) -> str:
        """Enqueue a stream; returns the id."""
        document = {"name": "stream", "script": SCRIPT, "directory": str(self.folder), **fields}
        definition = build_definition({"retry": {"attempts": 3, "delay": "50ms"}, **document}, "test")
        plan = compile_program(definition)
        assert plan is not None
        return self.client.enqueue(definition, {**plan, "mode": mode, "trigger_ms": trigger_ms}).id

    def change(self, name: str) -> Path:
        """Create a file for the driver."""
        (self.folder / name).touch()
        return self.folder / name

    def attempt(self, job_id: str) -> Attempt:
        record = self.deployment.queues.get(job_id)
        path = attempt_path(
            self.deployment.queues.layout.record(job_id), record.run_key, self.client.get(job_id).attempt
        )
        attempt = Attempt.read(self.deployment.queues.session, path)
        assert attempt is not None
        return attempt

    def progress(self, job_id: str) -> dict[str, Any]:
        return self.client.progress(self.client.get(job_id)) or {}

    def wait_for_batch(self, job_id: str) -> dict[str, Any]:
        """The progress once a micro-batch has ended."""

        def streamed() -> dict[str, Any] | None:
            found = self.progress(job_id)
            return found if found.get("streamed") else None

        return wait_until(streamed, WAIT_S, "a micro-batch has ended")

    def wait_for_stopping(self, job_id: str) -> None:
        wait_until(lambda: self.progress(job_id).get("stopping"), WAIT_S, "the driver knows of the request")

    def is_started(self, job_id: str) -> bool:
        return self.client.get(job_id).attempt > 0 and (self.attempt(job_id).state is AttemptState.STARTED)

    def stop_exists(self, job_id: str) -> bool:
        queues = self.deployment.queues
        return queues.session.exists(queues.layout.stop("default", job_id)) is not None


@pytest.fixture
def streams(deployment: Deployment, tmp_path: Path) -> Streams:
    """Streams of the deployment, in a folder of their own."""
    return Streams(deployment, tmp_path / "stream")
