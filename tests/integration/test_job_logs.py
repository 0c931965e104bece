import threading
from pathlib import Path

import pytest

from orchestrator.cli.job.log_files import LogStream, print_logs
from orchestrator.model.errors import NoSuchAttempt
from spark_runner.runners.registry import Runners
from tests.jobs_support import Deployment, python_job
from tests.waiting import wait_until

PROGRAM = """
import pathlib
first = pathlib.Path({first!r})
if not first.exists():
    first.touch()
    print("the first attempt speaks", flush=True)
    raise ValueError
print("the second attempt speaks", flush=True)
"""


def test_following_waits_for_the_start_and_continues_through_retries(
    deployment: Deployment, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = PROGRAM.format(first=str(tmp_path / "first"))
    job_id = deployment.submit(program, retry={"attempts": 2, "delay": "100ms"})
    runners = Runners.of(deployment.runner())
    follower = threading.Thread(
        target=print_logs,
        args=(deployment.client, runners, job_id, None, [LogStream.STDOUT]),
        kwargs={"follow": True},
    )
    follower.start()
    deployment.worker()
    deployment.wait(job_id)
    wait_until(lambda: not follower.is_alive(), 20, "following ends with the job")
    assert capfd.readouterr().out.splitlines() == ["the first attempt speaks", "the second attempt speaks"]


def test_logs_of_a_job_that_was_not_started_are_not_there(deployment: Deployment) -> None:
    job_id = deployment.client.submit(python_job("pass"), delay=3600).id
    with pytest.raises(NoSuchAttempt, match="it has not been started"):
        print_logs(
            deployment.client, Runners.of(deployment.runner()), job_id, None, list(LogStream), follow=False
        )
