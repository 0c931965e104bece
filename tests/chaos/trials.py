"""One trial: a job on a real backend whose worker dies, or loses ZooKeeper, at a critical moment."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from orchestrator.config.settings import Settings
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.states import Status
from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import RunState
from tests.chaos.proxy import FaultProxy
from tests.crash_points import Point
from tests.jar_support import make_jar
from tests.jobs_support import Deployment, python_job
from tests.pid_namespaces import IN_ANOTHER_PID_NAMESPACE
from tests.runner_kits import Kit
from tests.scripted.judge import left_over, violations
from tests.servers.kubernetes.container import JAVA_IMAGE
from tests.waiting import wait_until
from tests.workers import WorkerProcess, worker_config, worker_processes

SESSION_S = 4.0
END_S = 180
_LEFT_S = 30.0  # ephemerals exist until the timeout of their session
_PROGRAM = "say('here')\nsleep(0.5)"
_LONG_PROGRAM = f"say('here')\nsleep({SESSION_S + 4})"


class Fault(StrEnum):
    """The fault of the first worker; a second one follows."""

    BEFORE_INTENT = "killed before the intent"
    AFTER_INTENT = "killed after the intent"
    AFTER_SPAWN = "killed after the submission"
    BEFORE_VERDICT = "killed before the verdict is recorded"
    SOMETIME = "killed at a random moment"
    CUT_OFF = "cut off from ZooKeeper, and its driver too, for longer than a session"
    SUSPENDED = (
        "suspended with its driver beyond the session timeout; the next worker is in another PID namespace"
    )


POINTS = {
    Fault.BEFORE_INTENT: Point("intent", after=False),
    Fault.AFTER_INTENT: Point("intent", after=True),
    Fault.AFTER_SPAWN: Point("submit", after=True),
    Fault.BEFORE_VERDICT: Point("running>success", after=False),
}
FAULTS = (*POINTS, Fault.CUT_OFF)
"""Faults without a random moment, possible on each backend."""


@dataclass(frozen=True)
class Trial:
    """A fault; for a random one also its time in seconds after the start of the worker."""

    fault: Fault
    seconds: float = 0.0

    @classmethod
    def at_random(cls, rng: random.Random, longest: float) -> "Trial":
        """Half of the trials at a point, half at any moment of a job of `longest` seconds."""
        if rng.random() < 0.5:
            return cls(rng.choice(FAULTS))
        return cls(Fault.SOMETIME, rng.uniform(0, longest))

    def __str__(self) -> str:
        return f"{self.fault} ({self.seconds:.1f} s)" if self.seconds else str(self.fault)


class Arena:
    """An orchestrator on one backend, behind a proxy that can cut off workers and drivers."""

    def __init__(self, kit: Kit, proxy: FaultProxy, folder: Path) -> None:
        self.kit, self.proxy, self.folder = kit, proxy, folder
        self._hosts = kit.session.settings.hosts
        self.root = kit.root

    def settings(self, hosts: str) -> Settings:
        return Settings(
            zookeeper_hosts=hosts,
            root=self.root,
            state_dir=self.folder / "state",
            session_timeout=SESSION_S,
            kill_grace=2.0,
        )

    def run(self, trial: Trial) -> list[str]:
        """The violations; empty when user code ran as often as expected, and nothing is left over."""
        with self._deployment() as deployment:
            program = _PROGRAM if trial.fault in {*POINTS, Fault.SOMETIME} else _LONG_PROGRAM
            kit, target = self.kit, self.kit.target
            spark = {"master": target.master, "deploy_mode": target.deploy_mode, "conf": kit.conf}
            if target.options:
                spark[target.backend] = target.options
            retry = {"attempts": 3, "delay": "100ms"}
            job_id = deployment.client.submit(self._job(program, spark=spark, retry=retry)).id
            run_key = deployment.client.detail(job_id).run_key
            with ExitStack() as stack:
                if trial.fault is Fault.SUSPENDED:
                    stack.enter_context(self._suspended_worker(deployment, job_id))
                else:
                    self._first_worker(trial, run_key)
                    deployment.worker(runner=kit.runner)
                deployment.wait(job_id, timeout=END_S)
            found = violations(deployment.client, kit.ledger, {job_id: {Status.SUCCESS}})
            if not kit.ledger.starts_of(run_key):
                found.append("no user code ran")
            return found + self._left(deployment, run_key)

    def _job(self, program: str, **fields: object) -> Definition:
        return python_job(self.kit.written(program), **fields)

    @contextmanager
    def _deployment(self) -> Iterator[Deployment]:
        deployment = Deployment(self.settings(self._hosts))
        try:
            yield deployment
        finally:
            deployment.close()

    def _first_worker(self, trial: Trial, run_key: str) -> None:
        settings = self.settings(self.proxy.address)
        config = worker_config(
            settings, "real", die_at=POINTS.get(trial.fault), target=asdict(self.kit.target)
        )
        worker = WorkerProcess(f"first-{run_key}", self.folder, config, self._hosts)
        with worker_processes(worker):
            match trial.fault:
                case Fault.SOMETIME:
                    threading.Event().wait(trial.seconds)  # the moment itself is the fault
                    worker.kill()
                case Fault.CUT_OFF:
                    wait_until(lambda: self.kit.ledger.starts_of(run_key), END_S, "the program runs")
                    self.proxy.refuse(SESSION_S + 2)
                    worker.kill()
                case _:
                    worker.wait_killed()
            if worker.has_session:
                worker.end_session()

    @contextmanager
    def _suspended_worker(self, deployment: Deployment, job_id: str) -> Iterator[None]:
        """While it and its driver are suspended, a worker in another PID namespace follows the job."""
        config = worker_config(self.settings(self._hosts), "real", target=asdict(self.kit.target))
        first = WorkerProcess("first", self.folder, config, self._hosts)
        blind = WorkerProcess("blind", self.folder, config, self._hosts, wrapper=IN_ANOTHER_PID_NAMESPACE)
        run_key = deployment.client.detail(job_id).run_key

        def holder() -> str:
            return str((deployment.client.detail(job_id).held_by or {}).get("worker", ""))

        with worker_processes(first):
            wait_until(lambda: self.kit.ledger.starts_of(run_key), END_S, "the program runs")
            drivers, suspended = processes_of(f"{run_key}-1"), holder()
            first.suspend()
            try:
                for driver in drivers:
                    os.kill(driver, signal.SIGSTOP)
                with worker_processes(blind):
                    wait_until(lambda: holder() not in {"", suspended}, END_S, "another worker follows it")
                    threading.Event().wait(SESSION_S + 2)  # the duration itself is the fault
                    assert deployment.client.get(job_id).status is Status.RUNNING
                    for driver in drivers:
                        os.kill(driver, signal.SIGCONT)
                    first.resume()
                    yield
            finally:
                for driver in set(drivers) & set(processes_of(f"{run_key}-1")):
                    os.kill(driver, signal.SIGCONT)

    def _left(self, deployment: Deployment, run_key: str) -> list[str]:
        def left() -> list[str]:
            found = left_over(deployment.client, deployment.session(), self.root)
            for number in (1, 2, 3):
                submissions = self.kit.runner.find(f"{run_key}-{number}")
                found += [f"{each} is there" for each in submissions if each.state is RunState.RUNNING]
            return found

        try:
            wait_until(lambda: not left(), _LEFT_S, "nothing is left")
        except AssertionError:
            return left()
        return []


class JarArena(Arena):
    """An arena of pods without Python, for jobs that are jars."""

    def __init__(self, kit: Kit, proxy: FaultProxy, folder: Path) -> None:
        options = {**kit.target.options, "image": JAVA_IMAGE}
        super().__init__(replace(kit, target=replace(kit.target, options=options)), proxy, folder)
        self._jar = make_jar("Steps", folder)

    def _job(self, program: str, **fields: object) -> Definition:
        milliseconds = "500" if program == _PROGRAM else str(int(SESSION_S + 4) * 1000)
        arguments = [str(self.kit.ledger.path), "sleep", milliseconds]
        document = {"name": "test", "jar": f"local://{self._jar}", "class": "Steps", "arguments": arguments}
        return build_definition({**document, **fields}, "test")
