"""Starts and lists the warm servers of this host, starts drivers in them, and clears ended drivers."""

import hashlib
import json
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from spark_runner.errors import KillError
from spark_runner.process import current_pid_namespace
from spark_runner.run_plan import in_warm_server
from spark_runner.runners.base import SparkTarget, Submission, SubmitRequest
from spark_runner.runners.environment import for_drivers
from spark_runner.runners.launch import Launch, driver_environment, launch_driver
from spark_runner.runners.run_directory import RunDirectory, run_directories
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.warm.files import LINK, ServerFiles

_SERVER_MAIN = Path(__file__).parents[2] / "warm" / "server_main.py"  # never imported: it loads PySpark
# A JVM that has run out of memory may keep running without working; its drivers should restart elsewhere.
_JAVA_OPTIONS = ("-XX:+ExitOnOutOfMemoryError",)
_FAIR = {"spark.scheduler.mode": "FAIR"}  # a small job does not wait for the tasks of a large one
_EVICTION_SECONDS = 10.0  # a server ends itself if it cannot end a query within five
_LOOK_SECONDS = 0.05
_KEY_CHARACTERS = 12


@dataclass(frozen=True, slots=True)
class WarmSpec:
    """The Spark configuration of a server: jobs with the same one can run there."""

    master: str
    conf: Mapping[str, str]

    @property
    def key(self) -> str:
        """Its name; different in each PID namespace, because a server must see its drivers and workers."""
        text = json.dumps([self.master, sorted(self.conf.items()), current_pid_namespace()])
        return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARACTERS]


class WarmServers:
    """The servers below one state directory, of all workers. Thread-safe.

    `recycling` is part of each server's plan: see `spark_runner.warm.server.Recycling`. A server opens after
    a `rehearsal`, so that the first job does not pay for Spark's one-time work.
    """

    def __init__(
        self, submits: SparkSubmits, recycling: Mapping[str, float] | None = None, *, rehearsal: bool = True
    ) -> None:
        self.submits = submits
        self._plan = {"recycling": dict(recycling or {}), "rehearsal": rehearsal}

    # ------------------------------------------------------------------ servers
    def start(self, spec: WarmSpec) -> None:
        """Start a server, which takes no job before it is open; raises SubmissionError."""
        request = SubmitRequest(
            f"warm-{spec.key}-{uuid.uuid4().hex[:8]}",
            uuid.uuid4().hex,
            "warm server",
            self._plan,
            target=SparkTarget(spec.master),
            conf=_FAIR | dict(spec.conf),
        )

        def prepare(directory: RunDirectory) -> Launch:
            files = ServerFiles(directory.path)
            files.prepare()
            files.keep()
            return launch_driver(
                request,
                directory,
                driver_main=_SERVER_MAIN,
                conf_dir=self.submits.state_dir / "spark-conf",
                java_options=_JAVA_OPTIONS,
                quick_start=self.submits.quick_start,
                passed_on=self.submits.passed_on,
            )

        self.submits.start(request, prepare)

    def of(self, spec: WarmSpec) -> list[ServerFiles]:
        """The servers for this spec, oldest first: starting, open and ended ones."""
        runs = self.submits.state_dir / "runs"
        names = [path.name for path in runs.glob(f"warm-{spec.key}-*")] if runs.is_dir() else []
        found = [run_directories(self.submits.state_dir, name) for name in names]
        directories = sorted((each[-1] for each in found if each), key=RunDirectory.submitted_ns)
        return [ServerFiles(directory.path) for directory in directories]

    def runs(self, server: ServerFiles) -> bool:
        """Whether its JVM runs, or is about to."""
        return any(found.may_run for found in self.submits.find(server.run))

    # ------------------------------------------------------------------ their drivers
    def start_driver(
        self, jobs: SparkSubmits, request: SubmitRequest, server: ServerFiles, driver_main: Path
    ) -> Submission:
        """Start a driver in this server, as a process of its own like any driver; raises SubmissionError."""

        def prepare(directory: RunDirectory) -> Launch:
            (directory.path / LINK).symlink_to(server.path)
            inherited = for_drivers(jobs.passed_on)
            environment = driver_environment(request, directory, jobs.state_dir / "spark-conf", inherited)
            arguments = [str(driver_main), str(directory.path / "plan.json")]
            return Launch(arguments, environment, program=[sys.executable], directory=request.directory)

        return jobs.start(replace(request, plan=in_warm_server(request.plan, str(server.path))), prepare)

    def has(self, driver: RunDirectory) -> bool:
        """Whether a query of a driver may still run in its server after the end of the driver's process."""
        server = _server_of(driver)
        return server is not None and server.is_in(driver.incarnation) and self.runs(server)

    def evict(self, driver: RunDirectory) -> None:
        """Wait until the server has cleared an ended driver, or else end the server; raises KillError."""
        deadline = time.monotonic() + _EVICTION_SECONDS
        while self.has(driver) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        server = _server_of(driver)
        if server is not None and self.has(driver):
            self.submits.kill(server.run, grace_seconds=0)
            if self.has(driver):
                raise KillError(f"run {driver.run} may still have a query in {server.run}")


def _server_of(driver: RunDirectory) -> ServerFiles | None:
    try:
        return ServerFiles((driver.path / LINK).readlink())
    except OSError:
        return None
