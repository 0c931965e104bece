"""A worker that an operator drains: it takes nothing more, keeps what it has, and is empty in the end."""

import threading
from pathlib import Path

import pytest
from loguru import logger

from orchestrator.leader.election import Election
from orchestrator.leader.stale_drains import StaleDrains
from orchestrator.model.errors import CannotDrain, NoSuchWorker, NotDraining, SeveralWorkers
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from orchestrator.worker import worker as worker_module
from orchestrator.worker.worker import Worker
from queues.model.operations import Delete
from tests.jobs_support import ScriptedDeployment, rescan_often
from tests.operators_support import Stage
from tests.queues_support import expire
from tests.waiting import wait_until

SOON_S = 20


def until(go: Path, after: str = "") -> str:
    return f"until({str(go)!r}){after}"


def has_started(deployment: ScriptedDeployment, job_id: str) -> bool:
    attempts = deployment.client.detail(job_id).attempts
    return bool(attempts) and attempts[-1]["state"] == "started"


def runs_on(worker: Worker, deployment: ScriptedDeployment, program: str, **fields: object) -> str:
    """Submit a job whose driver runs on this worker, the only one."""
    job_id = deployment.submit(program, **fields)
    wait_until(lambda: worker.dispatcher.in_flight.count(Queue.RUNNING), SOON_S, "it runs")
    return job_id


def drain(deployment: ScriptedDeployment, worker: Worker) -> None:
    assert deployment.client.drains.request(worker.name)
    wait_until(lambda: worker.drain_request.act is not None, SOON_S, "the worker sees the request")


def test_a_worker_that_drains_ends_what_it_has_and_takes_nothing_more(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    deployment, go = scripted_deployment, tmp_path / "go"
    worker = deployment.worker(slots=4)
    first = runs_on(worker, deployment, until(go))
    ready = worker.probes[1]
    wait_until(lambda: ready.report().is_well, SOON_S, "the worker is ready")
    drain(deployment, worker)
    second = deployment.submit("pass")
    assert "draining failed" in "\n".join(ready.report().lines)
    assert not deployment.client.drains.request(worker.name), "it is asked already"
    wait_until(lambda: deployment.client.drains.progress(worker.name).follows, SOON_S, "it is announced")
    progress = deployment.client.drains.progress(worker.name)
    assert (progress.state, progress.left, progress.jobs) == ("draining", 1, (first,))
    (status,) = deployment.client.workers()
    assert (status.draining, status.held, status.used, status.slots) == (True, 1, 1, 4)

    def waits_for() -> str:
        waiting = deployment.client.detail(second).waiting
        return "" if waiting is None else waiting.reason

    wait_until(lambda: waits_for() == "draining", SOON_S, "the job shows why it waits")
    assert not worker.is_drained
    go.touch()
    assert deployment.wait(first).job.status is Status.SUCCESS
    wait_until(lambda: worker.is_drained, SOON_S, "it has drained")
    assert deployment.client.get(second).queue is Queue.ACCEPT
    worker.drain()
    assert deployment.client.drains.progress(worker.name).state == "drained"
    deployment.worker()
    assert deployment.wait(second).job.status is Status.SUCCESS


def test_a_job_that_fails_on_a_worker_that_drains_gets_its_next_attempt_elsewhere(
    scripted_deployment: ScriptedDeployment, tmp_path: Path
) -> None:
    deployment, go = scripted_deployment, tmp_path / "go"
    worker = deployment.worker()
    program = until(go, "\nif attempt == 1: fail('the first')")
    job_id = runs_on(worker, deployment, program, retry={"attempts": 2, "delay": "0s"})
    drain(deployment, worker)
    go.touch()
    wait_until(lambda: worker.is_drained, SOON_S, "it has drained")
    view = deployment.client.get(job_id)
    assert (view.queue, view.attempt) == (Queue.ACCEPT, 1)
    deployment.worker()
    view = deployment.wait(job_id).job
    assert (view.status, view.attempt) == (Status.SUCCESS, 2)


def test_a_drain_lasts_through_a_lost_session_and_loses_no_driver(
    scripted_deployment: ScriptedDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescan_often(monkeypatch)
    deployment, go = scripted_deployment, tmp_path / "go"
    worker = deployment.worker()
    session = deployment._sessions[-1]  # noqa: SLF001 - that of the worker
    job_id = runs_on(worker, deployment, until(go))
    drain(deployment, worker)
    seen, stop = set[tuple[bool, bool]](), threading.Event()

    def watch() -> None:
        while not stop.is_set():
            seen.add((worker.is_busy(), worker.is_drained))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        expire(session)
        wait_until(lambda: (False, False) in seen or (False, True) in seen, SOON_S, "it lost its job")
        wait_until(worker.is_busy, SOON_S, "it holds its job again")
    finally:
        stop.set()
        watcher.join()
    assert (False, True) not in seen, "a worker that has only lost its session has not drained"
    assert deployment.client.get(job_id).attempt == 1
    monkeypatch.setattr(worker_module, "_SETTLE_SECONDS", 0.5)
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS
    wait_until(lambda: worker.is_drained, SOON_S, "it has drained")


def test_a_withdrawn_drain_lets_the_worker_work_on(scripted_deployment: ScriptedDeployment) -> None:
    deployment = scripted_deployment
    worker = deployment.worker()
    with pytest.raises(NotDraining):
        deployment.client.drains.withdraw(worker.name)
    drain(deployment, worker)
    job_id = deployment.submit("pass")
    deployment.client.drains.withdraw(worker.name)
    assert deployment.wait(job_id).job.status is Status.SUCCESS
    assert not worker.is_drained
    wait_until(
        lambda: deployment.client.drains.progress(worker.name).state == "withdrawn", SOON_S, "it is announced"
    )


def test_a_driver_of_another_worker_is_adopted_by_one_that_does_not_drain(
    scripted_deployment: ScriptedDeployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescan_often(monkeypatch)
    deployment, go = scripted_deployment, tmp_path / "go"
    first = deployment.worker()
    job_id = runs_on(first, deployment, until(go))
    wait_until(lambda: has_started(deployment, job_id), SOON_S, "its driver runs")
    draining = deployment.worker()
    drain(deployment, draining)
    first.drain()
    wait_until(lambda: draining.is_drained, SOON_S, "it takes nothing over")
    lines = list[str]()
    sink = logger.add(lambda message: lines.append(message.record["message"]), level="INFO")
    try:
        adopter = deployment.worker()
        wait_until(adopter.is_busy, SOON_S, "the third worker adopts the driver")
        words = f"adopted the driver of {job_id}, attempt 1, from worker {first.name}"
        wait_until(lambda: words in lines, SOON_S, "the adoption is logged")
        wait_until(
            lambda: [w.adopted for w in deployment.client.workers() if w.name == adopter.name] == [1],
            SOON_S,
            "it is counted",
        )
    finally:
        logger.remove(sink)
    assert not draining.is_busy()
    go.touch()
    assert deployment.wait(job_id).job.status is Status.SUCCESS
    assert lines.count(words) == 1


def test_only_a_worker_of_its_own_process_is_drained_and_by_its_name_or_that_of_its_host(
    stage: Stage,
) -> None:
    drains, nodes = stage.client.drains, stage.nodes
    with pytest.raises(NoSuchWorker, match="none"):
        drains.find("worker-7")
    stage.make(nodes.worker("worker-7"), {"host": "here", "drains": True})
    stage.make(nodes.worker("worker-8"), {"host": "there", "drains": True})
    stage.make(nodes.worker("worker-9"), {"host": "there"})  # of `up`, or of an earlier version
    assert [drains.find(name) for name in ("worker-7", "here")] == ["worker-7", "worker-7"]
    with pytest.raises(SeveralWorkers, match="worker-8, worker-9"):
        drains.find("there")
    with pytest.raises(NoSuchWorker):
        drains.request("worker-6")
    with pytest.raises(CannotDrain):
        drains.request("worker-9")
    assert not stage.is_there(nodes.drain("worker-9"))
    assert drains.request("worker-7")
    assert stage.is_there(nodes.drain("worker-7"))


def test_the_leader_removes_the_request_to_a_worker_that_is_gone(stage: Stage) -> None:
    nodes = stage.nodes
    for name in ("gone", "here"):
        stage.make(nodes.worker(name), {"drains": True})
        assert stage.client.drains.request(name)
    stage.commit(Delete(nodes.worker("gone")))
    election = Election(stage.session, nodes, "leader")
    election.look(lambda: None)
    StaleDrains(stage.queues, nodes, election.fence, patience=0.0).step()
    assert not stage.is_there(nodes.drain("gone"))
    assert stage.is_there(nodes.drain("here"))


def test_a_request_that_another_program_has_written_is_one(
    scripted_deployment: ScriptedDeployment,
) -> None:
    deployment = scripted_deployment
    worker = deployment.worker()
    session, nodes = deployment.session(), Nodes(deployment.settings.root)
    session.ensure_path(nodes.drain(worker.name))  # as `create` of zkCli, without data
    wait_until(lambda: worker.is_drained, SOON_S, "it has drained")
