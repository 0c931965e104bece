"""Drivers that are processes of this host, executors and all."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from spark_runner.runners.base import LogFile, Place, Submission, SubmitRequest
from spark_runner.runners.spark_submits import SparkSubmits


class LocalRunner:
    """Runs drivers with a local master; `driver_main` is the file that spark-submit runs."""

    backend: ClassVar[str] = "local"

    def __init__(self, submits: SparkSubmits, *, driver_main: Path) -> None:
        self.submits = submits
        self._driver_main = driver_main.absolute()

    def place(self) -> Place:
        """This host, in its present boot; raises SubmissionError without a usable state directory."""
        return self.submits.place(self.backend)

    def reaches(self, place: Place) -> bool:
        """Whether that is our directory on this host."""
        return self.backend == place.backend and self.submits.reaches(place)

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a driver under a shim of its own; raises SubmissionError."""
        return self.submits.start_driver(request, self._driver_main)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` in the state directory, oldest first."""
        return self.submits.find(run)

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs; at most one look at all processes, and none while all shims are well."""
        return self.submits.poll_many(runs)

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`, verified; raises KillError. An unknown run is no error."""
        self.submits.kill(run, grace_seconds=grace_seconds)

    def logs(self, run: str) -> list[LogFile]:
        """The logs of every submission of `run` that exist by now, oldest first."""
        return self.submits.logs(run)

    def cleanup(self, run: str) -> None:
        """Remove the directories of `run`; raises SparkRunnerError while a driver of it may be running."""
        self.submits.cleanup(run)
