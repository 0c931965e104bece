"""Runs drivers on this host, with executors on a standalone cluster."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from spark_runner.protocol.errors import BackendUnreachable, SubmissionError
from spark_runner.runners.base import LogFile, RunState, Submission, SubmissionPlace, SubmitRequest
from spark_runner.runners.run_directory import run_directories
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.standalone.address import StandaloneCluster
from spark_runner.runners.standalone.api import Snapshot
from spark_runner.runners.standalone.applications import application_wait_reason, end_applications
from spark_runner.runners.standalone.executor_logs import StandaloneExecutorLogs
from spark_runner.runners.standalone.launch import application_name, with_core_limit


class ClientModeRunner:
    """Runs drivers as processes of this host; the cluster is asked only about remaining applications.

    The shim records the end of a driver. The master reports FINISHED for every application that ended.
    """

    backend: ClassVar[str] = "standalone"

    def __init__(self, cluster: StandaloneCluster, submits: SparkSubmits, *, driver_main: Path) -> None:
        self._cluster = cluster
        self._submits = submits
        self._driver_main = driver_main.absolute()
        self._masters = cluster.masters()
        self._executors = StandaloneExecutorLogs(self._masters, submits.state_dir)

    def place(self) -> SubmissionPlace:
        """This host in its present boot; raises SubmissionError without a usable state directory."""
        return self._submits.place(self.backend, self._cluster.to_json())

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether `place` is this state directory on this host, with this cluster."""
        is_cluster = place.backend == self.backend and place.cluster == self._cluster.to_json()
        return is_cluster and self._submits.reaches(place)

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a driver under its own shim; raises SubmissionError, also while no master leads."""
        try:
            self._masters.snapshot()
            self._cluster.check_listens()
        except BackendUnreachable as error:
            # Reported now: the driver would try for a minute, and then blame the user's program.
            raise SubmissionError(f"driver of run {request.run} not started: {error}") from error
        named = replace(
            request, name=application_name(request.name, request.run), conf=with_core_limit(request.conf)
        )
        return self._submits.start_driver(named, self._driver_main)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` in the state directory, oldest first."""
        return self.poll_many([run])[run]

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs, with at most one request to the master: why running drivers wait."""
        snapshot = cache(self._snapshot)
        return {
            run: [_with_wait(submission, snapshot) for submission in submissions]
            for run, submissions in self._submits.poll_many(runs).items()
        }

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`, then its applications, verified; raises KillError."""
        known = bool(self._submits.find(run))
        self._submits.kill(run, grace_seconds=grace_seconds)
        if known:
            end_applications(self._masters, run)

    def logs(self, run: str) -> list[LogFile]:
        """The existing logs of every submission of `run`, oldest first; then those of executors."""
        directories = run_directories(self._submits.state_dir, run)
        executors = self._executors.copy(run, directories[-1].incarnation) if directories else []
        return self._submits.logs(run) + executors

    def cleanup(self, run: str) -> None:
        """Remove the directories of `run`; raises SparkRunnerError while a driver of it may be running."""
        self._submits.cleanup(run)
        self._executors.remove(run)

    def _snapshot(self) -> Snapshot | None:
        try:
            return self._masters.snapshot()
        except BackendUnreachable:
            return None  # does not concern the driver, which is a process of this host


def _with_wait(submission: Submission, snapshot: Callable[[], Snapshot | None]) -> Submission:
    if submission.state is not RunState.RUNNING or submission.detail:
        return submission
    known = snapshot()
    words = application_wait_reason(known, submission.run) if known else "no master of its cluster leads now"
    return replace(submission, detail=words)
