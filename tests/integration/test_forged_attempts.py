"""A program that forges the documents of its driver: its job can still be stopped, and ends."""

import pytest

from orchestrator.model.states import Queue, Status
from spark_runner.protocol.attempt import VERSION_STARTED, attempt_path
from tests.jobs_support import Deployment
from tests.waiting import wait_until

WAIT_S = 60
FORGES = """
import json, os, time
from kazoo.client import KazooClient
plan = json.load(open(os.environ["ORCHESTRATOR_RUN_DIR"] + "/plan.json"))
client = KazooClient(plan["zookeeper"]["hosts"])
client.start(timeout=30)
path = plan["attempt_path"]
def forge(**changes):
    document = json.loads(client.get(path)[0])
    text = json.dumps({**document, **changes}).replace("1000000000000000.0", "1e15")
    return client.set(path, text.encode())
"""
STAYS = "\ntime.sleep(600)\n"
OPEN = {
    "that it is elsewhere": "forge(place={'backend': 'local', 'host': 'elsewhere', 'store': 'theirs'})",
    "no place": "forge(place=7)",
    "that it is of another job": "forge(run_key='00000000-0000-0000-0000-000000000000')",
    "that it was never taken": "forge(state='intent')",
    "no document": "client.set(path, b'\\xff')",
    "a state that there is not": "forge(state=['started'])",
    "as much as a node holds": "forge(words='x' * 1_000_000)",
    "numbers that grow when they are written again": "forge(words=[1e15] * 40_000)",
}
ENDED = {
    "an error without words": "forge(state='failed', error={'class': 'user', 'message': 7})",
    "an error of no kind": "forge(state='failed', error={'class': ['user'], 'message': 'x'})",
    "times that are none": "forge(state='failed', started={'a': 1}, ended=7, error=None)",
    "times without end": "forge(state='failed', started='2026-01-31T06:00:00.' + '0' * 90_000)",
    "that it was never sent": "forge(state='failed', unsent=True, error=None)",
    "that it may be tried again": "forge(state='closed', passing=True, unsent=True, error='x')",
    "as much as a node holds": "forge(state='failed', error='x' * 1_000_000)",
}


def forged(deployment: Deployment, forgery: str) -> str:
    """A job whose program has written this into its attempt, and stays."""
    job_id = deployment.submit(FORGES + forgery + STAYS)
    path = attempt_path(deployment.queues.layout.record(job_id), deployment.queues.get(job_id).run_key, 1)

    def is_forged() -> bool:
        found = deployment.queues.session.get(path)
        return found is not None and found[1].version > VERSION_STARTED

    wait_until(is_forged, WAIT_S, "the program has forged its attempt")
    return job_id


@pytest.mark.parametrize("forgery", OPEN.values(), ids=[*OPEN])
def test_a_job_is_killed_whatever_its_program_says_of_its_attempt(
    deployment: Deployment, forgery: str
) -> None:
    deployment.worker()
    job_id = forged(deployment, forgery)
    deployment.client.kill(job_id)
    detail = deployment.wait(job_id, WAIT_S)
    assert (detail.job.queue, detail.job.status) == (Queue.FINISH, Status.KILL)
    assert deployment.wait(deployment.submit("pass")).job.status is Status.SUCCESS


@pytest.mark.parametrize("forgery", OPEN.values(), ids=[*OPEN])
def test_another_worker_that_takes_the_job_over_kills_it_too(deployment: Deployment, forgery: str) -> None:
    worker = deployment.worker()
    job_id = forged(deployment, forgery)
    worker.drain()
    deployment.worker()
    deployment.client.kill(job_id)
    detail = deployment.wait(job_id, WAIT_S)
    assert (detail.job.queue, detail.job.status) == (Queue.FINISH, Status.KILL)


@pytest.mark.parametrize("forgery", ENDED.values(), ids=[*ENDED])
def test_a_job_ends_with_its_program_whatever_its_attempt_says_of_the_end(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, forgery: str
) -> None:
    monkeypatch.setattr("orchestrator.handlers.running._SETTLE_SECONDS", 1.0)
    monkeypatch.setattr("orchestrator.handlers.running._OBEY_SECONDS", 1.0)
    deployment.worker()
    job_id = deployment.submit(FORGES + forgery + STAYS, retry={"attempts": 1, "submissions": 1})
    detail = deployment.wait(job_id, WAIT_S)
    assert (detail.job.queue, detail.job.status) == (Queue.FINISH, Status.ERROR_FAIL)
    assert deployment.wait(deployment.submit("pass")).job.status is Status.SUCCESS


def test_a_job_whose_program_fills_its_attempt_and_dies_has_failed(deployment: Deployment) -> None:
    deployment.worker()
    job_id = deployment.submit(FORGES + "forge(words='x' * 1_000_000)\nos._exit(3)\n", retry={"attempts": 1})
    detail = deployment.wait(job_id, WAIT_S)
    assert (detail.job.queue, detail.job.status) == (Queue.FINISH, Status.ERROR_FAIL)
    assert detail.job.error is not None
    assert "exit code 3" in detail.job.error.message


@pytest.mark.parametrize("forgery", ["started='2999-01-31T06:00:00Z'", "state='intent'"])
def test_a_program_does_not_put_off_its_time_limit(deployment: Deployment, forgery: str) -> None:
    deployment.worker()
    again = f"while True:\n    forge({forgery})\n    time.sleep(0.05)\n"
    job_id = deployment.submit(FORGES + again, timeout={"run": "3s"})
    detail = deployment.wait(job_id, WAIT_S)
    assert detail.job.status in {Status.KILL, Status.ERROR_FAIL}
    assert detail.job.error is not None
    assert detail.job.error.type == "RunTimeout"


OUTCOMES: dict[str, dict[str, object]] = {
    "that it is open": {"state": "intent"},
    "a state that there is not": {"state": 7},
    "no state": {"tables": []},
    "tables that are none": {"state": "failed", "tables": {"a": 1}, "error": 7},
    "tables of no kind": {"state": "failed", "tables": [1, None], "error": None},
}


@pytest.mark.parametrize("words", [0, 2_000_000], ids=["small", "more than a node holds"])
@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=[*OUTCOMES])
def test_a_job_ends_whatever_its_program_leaves_as_its_outcome(
    deployment: Deployment, outcome: dict[str, object], words: int
) -> None:
    """It is read if ZooKeeper has none, as for a driver that could not reach ZooKeeper at its end."""
    deployment.worker()
    leaves = f"""
import json, os
with open(os.environ["ORCHESTRATOR_RUN_DIR"] + "/outcome.json", "w") as file:
    json.dump({outcome!r} | {{"words": "x" * {words}}}, file)
os._exit(3)
"""
    detail = deployment.wait(deployment.submit(leaves), WAIT_S)
    assert (detail.job.queue, detail.job.status) == (Queue.FINISH, Status.ERROR_FAIL)
    assert deployment.wait(deployment.submit("pass")).job.status is Status.SUCCESS
