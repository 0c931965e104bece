"""Support for tests of jobs: a client, and workers whose drivers are stand-ins or Spark."""

import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from orchestrator.admin.views import JobDetail
from orchestrator.client.client import Client
from orchestrator.compose import DRIVER_MAIN, build_queue_set, build_worker, open_session
from orchestrator.config.settings import Settings
from orchestrator.handlers.hooks import Hook
from orchestrator.history.hours import HOUR_SECONDS
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.reading.query import LogRecord
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.job import JobState
from orchestrator.model.limits import Limits
from orchestrator.worker.worker import Worker
from queues.consumer.consumer import Consumer
from queues.session import Session
from spark_runner.runners.base import Runner, SubmissionPlace
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.registry import Runners
from spark_runner.runners.spark_submits import SparkSubmits
from tests.scripted.backend import Backend
from tests.scripted.runner import ScriptedRunner
from tests.waiting import wait_until

STAND_IN = (sys.executable, str(Path(__file__).with_name("standin_submit.py")))
ENVIRONMENT_MARK = "LC_ORCHESTRATOR_TEST"  # drivers inherit LC_ variables, so all processes have it


def rescan_often(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.2) -> None:
    """From now on workers rescan all queues at this interval; for changes that no watch reports."""
    defaults = Consumer.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "rescan_seconds", seconds)


def poll_often(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.05) -> None:
    """From now on workers poll their backends at this interval."""
    monkeypatch.setattr("orchestrator.worker.polling._POLL_SECONDS", seconds)


def stand_ins(state_dir: Path) -> SparkSubmits:
    """Drivers of this host that are stand-ins."""
    return SparkSubmits(state_dir, spark_submit=STAND_IN)


class Deployment:
    """One ZooKeeper root and one state directory, with a client, its queues, and any number of workers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._sessions: list[Session] = []
        self._workers: list[Worker] = []
        self.queues = build_queue_set(self.session(), self.settings, owner="client")
        self.client = Client(self.queues)

    def session(self) -> Session:
        session = open_session(self.settings, self.settings.zookeeper_hosts).__enter__()
        self._sessions.append(session)
        return session

    def runner(self, state_dir: Path | None = None) -> Runner:
        directory = state_dir or self.settings.state_dir
        return LocalRunner(stand_ins(directory), driver_main=DRIVER_MAIN)

    def worker(
        self,
        *,
        slots: int = 2,
        runner: Runner | None = None,
        retention: float = 3600,
        scrub_interval: float = 600,
        hooks: Iterable[Hook] = (),
        logs: LogPipeline | None = None,
        hour_seconds: float = HOUR_SECONDS,
        **more: object,
    ) -> Worker:
        """Start a worker with stand-in drivers; `more` are limits of the configuration."""
        changed = {"slots": slots, "scrub_interval": scrub_interval}
        # Pressure and memory of the machine come from all tests.
        given = {"retention": retention, "memory_pressure_limit": 0.0, "memory_guard": False, **more}
        limits = Limits.model_construct(**{**Limits().model_dump(), **given})
        worker = build_worker(
            self.session(),
            self.settings.model_copy(update=changed),
            runners=Runners.of(runner or self.runner()),
            limits=lambda: limits,
            hooks=hooks,
            logs=logs,
            hour_seconds=hour_seconds,
        )
        self._workers.append(worker)
        worker.start()
        return worker

    def submit(self, program: str, **fields: object) -> str:
        """Enqueue a Python program; returns the id."""
        return self.client.submit(python_job(program, **fields)).id

    def logs(self, job_id: str, **view: Any) -> Iterator[LogRecord]:
        """The log records of a job, from the files of this deployment."""
        return Client(self.queues, settings=self.settings).logs(job_id, **view)

    def state(self, job_id: str) -> JobState:
        return JobState.from_payload(self.queues.get(job_id).payload)

    def wait(self, job_id: str, timeout: float = 60) -> JobDetail:
        self.client.wait(job_id, timeout=timeout)
        return self.client.detail(job_id)

    def close(self) -> None:
        while self._workers:
            self._workers.pop().drain()
        while self._sessions:
            self._sessions.pop().close()


class ScriptedDeployment(Deployment):
    """A deployment whose drivers are threads of a scripted backend, for tests that are not about drivers."""

    def runner(self, state_dir: Path | None = None) -> ScriptedRunner:
        return ScriptedRunner(state_dir or self.settings.state_dir)


class BuggyRunner(LocalRunner):
    """A runner that its worker can announce, and that raises `error` at every later use."""

    def __init__(self, deployment: Deployment, error: Exception) -> None:
        super().__init__(stand_ins(deployment.settings.state_dir), driver_main=DRIVER_MAIN)
        self._error = error
        self._announced = False

    def place(self) -> SubmissionPlace:
        if self._announced:
            raise self._error
        self._announced = True
        return super().place()


def waits_for(go: Path) -> str:
    """A program that ends well when the file exists, or after a minute."""
    return f"""
import pathlib, time
for _ in range(600):
    if pathlib.Path({str(go)!r}).exists():
        break
    time.sleep(0.1)
"""


def sleeps(pid: Path) -> str:
    """A program that writes its process id to a file, and sleeps until it is killed."""
    return f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"


def python_job(program: str, **fields: object) -> Definition:
    document = {"name": "test", "python": program, "file": "job.py", "retry": {"attempts": 1}, **fields}
    return build_definition(document, "test")


def marked_processes(mark: str) -> list[psutil.Process]:
    """The live processes with this mark in their environment, except this one."""
    found = []
    for process in psutil.process_iter():
        try:
            if (
                process.pid != os.getpid()
                and process.environ().get(ENVIRONMENT_MARK) == mark
                and process.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process)
        except psutil.Error:
            continue  # ended meanwhile, or not readable
    return found


def command_line(process: psutil.Process) -> list[str]:
    """The command line of a process; empty if the process has ended, even if it is a zombie."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture
def process_mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Mark all processes that the test starts; after the test none of them may be left."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(ENVIRONMENT_MARK, mark)
    yield mark
    try:
        wait_until(lambda: not marked_processes(mark), 20, "every process that the test started has ended")
    finally:
        for process in marked_processes(mark):
            process.kill()


@pytest.fixture
def deployment(
    zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path, process_mark: str
) -> Iterator[Deployment]:
    """A deployment whose workers are drained after the test; nothing may be left running then."""
    assert process_mark
    made = Deployment(_settings(zookeeper_hosts, zookeeper_root, tmp_path))
    yield made
    made.close()


@pytest.fixture
def scripted_deployment(
    zookeeper_hosts: str, zookeeper_root: str, tmp_path: Path
) -> Iterator[ScriptedDeployment]:
    """The same with scripted drivers; programs call the functions of `tests.scripted.functions`."""
    settings = _settings(zookeeper_hosts, zookeeper_root, tmp_path)
    with Backend(settings.state_dir, zookeeper_hosts):
        made = ScriptedDeployment(settings)
        yield made
        made.close()


def _settings(hosts: str, root: str, folder: Path) -> Settings:
    return Settings(
        zookeeper_hosts=hosts, root=root, state_dir=folder / "state", session_timeout=4.0, kill_grace=2.0
    )


MakeProgram = Callable[..., str]
