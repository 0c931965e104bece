import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.model.states import Queue
from queues.queue_set import QueueSet
from spark_runner.runners.run_directory import run_path
from tests.archive_support import put_finished, queue_set
from tests.jobs_support import Deployment
from tests.waiting import wait_until

SOME = 30


def queues_of(deployment: Deployment) -> QueueSet:
    return queue_set(deployment.session(), deployment.settings.root)


def archived(deployment: Deployment) -> list[dict[str, Any]]:
    paths = sorted((deployment.settings.state_dir / "archive").glob("*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]


def wait_until_empty(queues: QueueSet) -> None:
    wait_until(lambda: queues.count(Queue.FINISH) == 0, 60, "all are removed")


def test_a_job_is_in_the_archive_after_its_retention_and_nowhere_else(
    deployment: Deployment, tmp_path: Path
) -> None:
    deployment.worker(retention=0.5)
    job_id = deployment.submit(f"open({str(tmp_path / 'ran')!r}, 'a').write('x')", labels={"team": "data"})
    queues = queues_of(deployment)
    wait_until(lambda: (tmp_path / "ran").exists() and not queues.contains(job_id), 60, "it is removed")
    (document,) = archived(deployment)
    assert (document["id"], document["status"], document["attempt"]) == (job_id, "SUCCESS", 1)
    assert document["definition"]["labels"] == {"team": "data"}
    assert [attempt["state"] for attempt in document["attempts"]] == ["succeeded"]
    assert list(document["times"]) == ["accept", "running", "success", "finish"]
    assert queues.session.exists(queues.layout.record(job_id)) is None
    assert not run_path(deployment.settings.state_dir, f"{document['run_key']}-1").exists()


def test_two_workers_of_a_host_archive_each_job_once(deployment: Deployment) -> None:
    queues = queues_of(deployment)
    ids = [put_finished(queues) for _ in range(SOME)]
    deployment.worker()
    deployment.worker()
    wait_until_empty(queues)
    assert sorted(document["id"] for document in archived(deployment)) == sorted(ids)


def test_jobs_stay_while_the_archive_takes_nothing(deployment: Deployment) -> None:
    queues = queues_of(deployment)
    ids = [put_finished(queues) for _ in range(5)]
    folder = deployment.settings.state_dir / "archive"
    folder.mkdir(parents=True)
    (folder / "lock").mkdir()  # then no worker can write there
    deployment.worker()
    wait_until(
        lambda: all(token.due > queues.clock.now_ms() for token in queues.tokens(Queue.FINISH)),
        30,
        "all are put off",
    )
    assert sorted(token.id for token in queues.tokens(Queue.FINISH)) == sorted(ids)
    assert {queues.get(job_id).payload.get("handler_errors", 0) for job_id in ids} == {0}


WORKER = """
import sys
from pathlib import Path
from orchestrator.config.settings import Settings
from orchestrator.compose import build_worker, open_session

hosts, root, state_dir = sys.argv[1:]
settings = Settings(zookeeper_hosts=hosts, root=root, state_dir=Path(state_dir), session_timeout=1.0)
with open_session(settings, hosts) as session:
    build_worker(session, settings).start()
    sys.stdin.readline()
"""


def test_workers_that_are_killed_again_and_again_lose_nothing_and_archive_nothing_twice(
    deployment: Deployment,
) -> None:
    queues, settings = queues_of(deployment), deployment.settings
    ids = [put_finished(queues) for _ in range(4 * SOME)]
    command = [sys.executable, "-c", WORKER, settings.zookeeper_hosts, settings.root, str(settings.state_dir)]
    for left in (3 * SOME, 2 * SOME, SOME):
        worker = subprocess.Popen(command, stdin=subprocess.PIPE)
        try:
            wait_until(partial(_is_down_to, queues, left), 60, f"{left} jobs are left")
        finally:
            os.kill(worker.pid, signal.SIGKILL)
            worker.communicate()
    deployment.worker()
    wait_until_empty(queues)
    assert sorted(document["id"] for document in archived(deployment)) == sorted(ids)


def _is_down_to(queues: QueueSet, left: int) -> bool:
    return queues.count(Queue.FINISH) <= left
