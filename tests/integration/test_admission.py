"""Workers of one host start drivers at the same moment: real processes, files and control groups."""

import multiprocessing
import os
import signal
import subprocess
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from orchestrator.admission.guard import Guard
from orchestrator.admission.host import Host
from orchestrator.admission.starts import Starts
from orchestrator.model.limits import Limits
from orchestrator.model.spark import Spark
from orchestrator.model.states import Queue, Status
from spark_runner.protocol.process import INCARNATION_VARIABLE, MEMORY_VARIABLE, RUN_VARIABLE
from spark_runner.protocol.sizing import driver_bytes
from tests.another_user import STRANGER
from tests.crash_points import Point
from tests.host_files import MIB, HostFiles
from tests.jobs_support import Deployment, deployment, process_mark, waits_for
from tests.servers.memory_group import memory_group
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

__all__ = ["deployment", "process_mark"]

SPAWN = multiprocessing.get_context("spawn")
PROCESSES, THREADS, CAPACITY = 3, 8, 7
SPARK = Spark()
ONE = driver_bytes(SPARK.properties)


def admit_many(folder: Path, number: int, begin: Barrier, result: Any) -> None:
    """One worker with concurrent requests from its threads."""
    limits = Limits()
    guard = Guard(lambda: limits, Starts(folder / "starts", f"worker-{number}"), Host(folder / "proc"))
    begin.wait()
    with ThreadPoolExecutor(THREADS) as threads:
        jobs = [f"job-{number}-{thread}" for thread in range(THREADS)]
        refused = list(threads.map(lambda job: guard.admit(job, SPARK), jobs))
    result.put(refused.count(None))
    signal.pause()  # until it is killed


def test_workers_that_ask_in_the_same_moment_are_promised_no_more_than_there_is(tmp_path: Path) -> None:
    HostFiles(tmp_path, available=CAPACITY * ONE + MIB)
    begin, result = SPAWN.Barrier(PROCESSES), SPAWN.Queue()
    workers = [
        SPAWN.Process(target=admit_many, args=(tmp_path, number, begin, result))
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    try:
        assert sum(result.get(timeout=60) for _ in workers) == CAPACITY
        late = Starts(tmp_path / "starts", "late")
        with late.turn():
            assert late.promised() == [ONE] * CAPACITY
    finally:
        for worker in workers:
            worker.kill()
            worker.join()
    with late.turn():
        assert late.promised() == [], "promises of dead workers do not count"


def test_no_other_user_declares_memory_in_the_name_of_drivers() -> None:
    """A worker that is root reads all environments: a forged large number would block it."""
    if os.geteuid() != 0:
        unavailable("only root reads the environments of other users")
    who: dict[str, Any] = {"user": STRANGER, "group": STRANGER, "extra_groups": []}
    names = [str(uuid.uuid4()) for _ in range(2)]
    with ExitStack() as stack:

        def start(run: str, declared: int, **user: Any) -> None:
            variables = {RUN_VARIABLE: run, INCARNATION_VARIABLE: "1", MEMORY_VARIABLE: str(declared)}
            process = subprocess.Popen(["/bin/sleep", "600"], env=variables, **user)
            stack.callback(process.wait)
            stack.callback(process.kill)

        start(names[0], ONE)  # as a shim whose driver runs as another user
        start(names[0], ONE << 20, **who)
        start(names[1], ONE << 20, **who)
        drivers = Host().drivers()
    assert {key: drivers[key].declared for key in drivers if key[:36] in names} == {f"{names[0]}/1": ONE}


def test_two_workers_of_a_host_start_no_more_drivers_at_once_than_its_memory_holds(
    deployment: Deployment, tmp_path: Path
) -> None:
    """Two of four drivers fit into the control group; each worker may run two."""
    seen, go = tmp_path / "seen", tmp_path / "go"
    program = f"""
import pathlib, time
def note(mark):
    with open({str(seen)!r}, "a") as file:
        file.write(mark)
note("+")
while not pathlib.Path({str(go)!r}).exists():
    time.sleep(0.05)
note("-")
"""
    config = worker_config(deployment.settings, "stand-in", slots=2, memory_guard=True)
    workers = [
        WorkerProcess(name, tmp_path, config, deployment.settings.zookeeper_hosts) for name in ("one", "two")
    ]
    deployment.queues.ensure_pool()
    deployment.client.pause("default")
    jobs = [deployment.submit(program, spark={"driver": {"memory": "1g"}}) for _ in range(4)]
    with ExitStack() as stack:
        group = stack.enter_context(memory_group(2 * ONE // MIB + 900))
        if group is None:
            unavailable("no control group with a memory limit can be made here")
        stack.callback(
            lambda: wait_until(lambda: not group.read_text("ascii"), 30, "nothing is left in the group")
        )
        stack.enter_context(worker_processes(*workers))
        for worker in workers:
            group.write_text(str(worker.process.pid), "ascii")
            worker.wait_started()
        wait_until(lambda: len(deployment.client.status().workers) == 2, 30, "both are announced")
        deployment.client.resume("default")
        refused = "a job is not taken: its driver may use 1.4 GiB"
        wait_until(
            lambda: any(refused in worker.log.read_text("utf-8") for worker in workers), 60, "one refuses"
        )
        wait_until(lambda: seen.exists() and seen.read_text("ascii") == "++", 60, "two run")
        starts = deployment.settings.state_dir / "starts"
        wait_until(
            lambda: not list(starts.glob("*.start")), 20, "they count by what they have declared alone"
        )
        queues = Counter(deployment.client.get(job).queue for job in jobs)
        assert queues == {Queue.RUNNING: 2, Queue.ACCEPT: 2}
        go.touch()
        for job in jobs:
            assert deployment.wait(job).job.status is Status.SUCCESS
    at_once, most = 0, 0
    for mark in seen.read_text("ascii"):
        at_once += 1 if mark == "+" else -1
        most = max(most, at_once)
    assert most == 2


def test_a_driver_whose_worker_died_before_the_start_waits_for_memory_of_the_next_worker(
    deployment: Deployment, tmp_path: Path
) -> None:
    """The promises of the dead worker are gone."""
    config = worker_config(deployment.settings, "stand-in", die_at=Point("intent", after=True))
    first = WorkerProcess("first", tmp_path, config, deployment.settings.zookeeper_hosts)
    job_id = deployment.submit("pass", spark={"driver": {"memory": "100t"}})
    with worker_processes(first):
        first.wait_killed()
        first.end_session()
    second = deployment.worker(memory_guard=True)
    status = wait_until(lambda: deployment.client.get(job_id).status is Status.RUNNING_WARN, 30, "it waits")
    assert status
    assert "its driver may use" in str(deployment.client.get(job_id).warning)
    assert deployment.client.get(job_id).attempt == 1
    second.drain()
    deployment.worker(memory_guard=False)
    assert deployment.wait(job_id).job.status is Status.SUCCESS


def test_a_job_that_is_let_go_of_before_its_driver_starts_is_promised_nothing(
    deployment: Deployment, tmp_path: Path
) -> None:
    go, starts = tmp_path / "go", deployment.settings.state_dir / "starts"
    first = deployment.worker(memory_guard=True)
    job_id = deployment.submit(waits_for(go))
    wait_until(lambda: deployment.client.get(job_id).queue is Queue.RUNNING, 30, "it runs")
    job, guard = first.dispatcher.in_flight.get(job_id), first._context.admission.guard  # noqa: SLF001 - as between intent and start
    assert job is not None
    assert guard is not None
    with guard._starts.turn():  # noqa: SLF001 - likewise
        guard._starts.add(job.run_key, ONE)  # noqa: SLF001 - likewise
    assert len(list(starts.glob("*.start"))) == 1
    first.drain()
    assert list(starts.glob("*.start")) == []
    go.touch()
    deployment.worker()
    assert deployment.wait(job_id).job.status is Status.SUCCESS
