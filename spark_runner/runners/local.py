"""Runs drivers with a local master: driver and executors are processes of this host."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from spark_runner.protocol.warm_files import ServerPlan
from spark_runner.runners.base import LogFile, RunState, Submission, SubmissionPlace, SubmitRequest
from spark_runner.runners.run_directory import remove_run, run_directories, run_directory
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.warm import WarmServers, WarmSupervisor


class LocalRunner:
    """Runs drivers with a local master; `driver_main` is the file that spark-submit runs.

    With a `warm` supervisor that has specs, small jobs may share a running JVM.
    """

    backend: ClassVar[str] = "local"

    def __init__(
        self, submits: SparkSubmits, *, driver_main: Path, warm: WarmSupervisor | None = None
    ) -> None:
        self.submits = submits
        self._driver_main = driver_main.absolute()
        if warm is None:
            warm = WarmSupervisor(WarmServers(SparkSubmits(submits.state_dir / "warm"), ServerPlan()))
        self._warm = warm

    def place(self) -> SubmissionPlace:
        """This host in its present boot; raises SubmissionError without a usable state directory."""
        return self.submits.place(self.backend)

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether `place` is this state directory on this host."""
        return self.backend == place.backend and self.submits.reaches(place)

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a driver under its own shim; raises SubmissionError."""
        # A warm server runs as the user of this process.
        server = self._warm.choose(request) if self.submits.user_of(request) is None else None
        if server is None:
            return self.submits.start_driver(request, self._driver_main)
        return self._warm.servers.start_driver(self.submits, request, server, self._driver_main)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` in the state directory, oldest first."""
        return self.poll_many([run])[run]

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs; at most one scan of all processes, and none while all shims are alive."""
        return {
            run: [self._seen_in_server(each) for each in found]
            for run, found in self.submits.poll_many(runs).items()
        }

    def _seen_in_server(self, found: Submission) -> Submission:
        """The submission, but running as long as a warm server still has a query of its driver."""
        if found.may_run:
            return found
        directory = run_directory(self.submits.state_dir, found.run, found.incarnation)
        if not self._warm.servers.has(directory):
            return found
        return replace(found, state=RunState.RUNNING, exit_code=None, failure=None)

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`, verified; raises KillError. An unknown run is no error."""
        self.submits.kill(run, grace_seconds=grace_seconds)
        for directory in run_directories(self.submits.state_dir, run):
            self._warm.servers.evict(directory)

    def logs(self, run: str) -> list[LogFile]:
        """The existing logs of every submission of `run`, oldest first."""
        return self.submits.logs(run)

    def cleanup(self, run: str) -> None:
        """Remove the directories of `run`; raises SparkRunnerError while a driver of it may be running."""
        remove_run(self.submits.state_dir, run, self.find(run))
