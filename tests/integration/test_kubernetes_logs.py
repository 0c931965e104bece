"""Following the log of a pod: each line once, as soon as it is written."""

import threading
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import pytest

from orchestrator.cli.job.log_files import LogStream, print_logs
from orchestrator.model.states import Status
from spark_runner.runners.registry import Runners
from tests.jobs_support import Deployment
from tests.kubernetes_support import KubernetesSite
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(1800), pytest.mark.usefixtures("process_mark")]

LINES = 4
END_S = 60
PROGRAM = """
import pathlib, sys, time
for number in range({lines}):
    print("line", number, flush=True)
    while not pathlib.Path({folder!r}, f"go-{{number}}").exists():
        time.sleep(0.05)
sys.stdout.write("the last one has no end")
"""


def test_each_line_is_printed_once_while_its_pod_runs(
    deployment: Deployment,
    kubernetes_site: KubernetesSite,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orchestrator.cli.job.log_files._COPY_SECONDS", 0.3)
    deployment.worker(runner=kubernetes_site.runner())
    target = kubernetes_site.target()
    program = PROGRAM.format(lines=LINES, folder=str(tmp_path))
    job_id = deployment.submit(program, spark={"master": target.master, "kubernetes": {**target.options}})
    # Another runner, as that of `job logs` beside the worker: it has only the files.
    runners = Runners.of(kubernetes_site.runner())
    follower = threading.Thread(
        target=print_logs,
        args=(deployment.client, runners, job_id, None, [LogStream.STDOUT]),
        kwargs={"follow": True},
    )
    printed = tmp_path / "printed"  # pytest's capture loses text that is printed while it is read

    def is_printed(line: str) -> bool:
        return line in printed.read_text()

    with printed.open("w") as stdout, redirect_stdout(stdout):
        follower.start()
        for number in range(LINES):
            wait_until(partial(is_printed, f"line {number}\n"), END_S, f"line {number} is printed")
            (tmp_path / f"go-{number}").touch()
        assert deployment.wait(job_id).job.status is Status.SUCCESS
        wait_until(lambda: not follower.is_alive(), END_S, "following ends with the job")
    assert printed.read_text().splitlines() == [
        *(f"line {number}" for number in range(LINES)),
        "the last one has no end",
    ]
