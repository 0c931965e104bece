"""Following the log of a pod: each line once, as soon as it is written."""

import threading
from functools import partial
from pathlib import Path

import pytest

from orchestrator.client.logs import JobLogs
from orchestrator.logs.reading.query import DRIVER, query_of
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
    monkeypatch.setattr("orchestrator.client.log_pages._COPY_SECONDS", 0.3)
    deployment.worker(runner=kubernetes_site.runner())
    target = kubernetes_site.target()
    program = PROGRAM.format(lines=LINES, folder=str(tmp_path))
    job_id = deployment.submit(program, spark={"master": target.master, "kubernetes": {**target.options}})
    # Another runner, as that of `job logs` beside the worker: it has only the files.
    runners = Runners.of(kubernetes_site.runner())
    logs = JobLogs(deployment.queues, deployment.settings, report=print, runners=runners)
    query, printed = query_of(streams=["stdout"]), list[str]()

    def follow() -> None:
        for record in logs.records(job_id, query, attempt=None, executor=DRIVER, follow=True):
            printed.append(record.message)

    follower = threading.Thread(target=follow)
    follower.start()
    for number in range(LINES):
        wait_until(partial(printed.__contains__, f"line {number}"), END_S, f"line {number} is printed")
        (tmp_path / f"go-{number}").touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS
    wait_until(lambda: not follower.is_alive(), END_S, "following ends with the job")
    assert printed == [*(f"line {number}" for number in range(LINES)), "the last one has no end"]
