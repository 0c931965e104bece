"""Runs drivers in cluster mode: on a node, with their files in a folder that all nodes see."""

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from orchestrator.logs.files import write_json
from spark_runner.protocol.errors import BackendUnreachable, KillError, SubmissionError
from spark_runner.protocol.process import processes_of
from spark_runner.runners.base import LogFile, RunState, Submission, SubmissionPlace, SubmitRequest
from spark_runner.runners.driver_zip import driver_zip
from spark_runner.runners.run_directory import (
    RunDirectory,
    log_files,
    remove_run,
    run_directories,
    run_directory,
    state_id,
)
from spark_runner.runners.standalone.address import StandaloneCluster
from spark_runner.runners.standalone.applications import end_applications, wait_ended
from spark_runner.runners.standalone.executor_logs import StandaloneExecutorLogs
from spark_runner.runners.standalone.launch import application_name, driver_request, with_core_limit
from spark_runner.runners.standalone.verdict import SUBMISSION_FILE, ClusterView, driver_id

_KILL_SECONDS = 14.0  # a node gives its driver 10 s from TERM to KILL; its applications get the rest of 20
_UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # from a damaged file in a run directory


class ClusterModeRunner:
    """Runs drivers on the nodes of one cluster, through its REST server.

    `staging` is a folder that this host and all nodes see under the same path. Spark's workers must be able
    to read and write the files there, so they run as the same user.
    """

    backend: ClassVar[str] = "standalone"

    def __init__(self, cluster: StandaloneCluster, staging: Path, *, driver_main: Path) -> None:
        self._cluster = cluster
        self._staging = staging.absolute()
        self._driver_main = driver_main.absolute()
        self._masters = cluster.masters()
        self._executors = StandaloneExecutorLogs(self._masters, self._staging)

    @cached_property
    def _where(self) -> Mapping[str, str]:
        folder = {"staging": str(self._staging), "store": state_id(self._staging)}
        return {**self._cluster.to_json(), **folder}

    def place(self) -> SubmissionPlace:
        """The cluster; raises SubmissionError without a usable folder."""
        return SubmissionPlace(self.backend, cluster=self._where)

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether `place` is the same cluster with the same folder."""
        return (place.backend, place.host, place.cluster) == (self.backend, "", self._where)

    def submit(self, request: SubmitRequest) -> Submission:
        """Submit a driver to the master; raises SubmissionError.

        If the reply is lost, the driver may exist or not; `find` shows it after a while.
        """
        named = replace(
            request, name=application_name(request.name, request.run), conf=with_core_limit(request.conf)
        )
        directory = run_directory(self._staging, request.run, request.incarnation)
        directory.create()
        detail = ""
        try:
            package = driver_zip(self._staging / "driver", request.python_packages)
            document = driver_request(named, directory, driver_main=self._driver_main, driver_zip=package)
            directory.write_plan(request)
            driver = self._masters.create_driver(document)
            with suppress(OSError):  # a full disk: the driver records its name itself
                write_json(directory.path / SUBMISSION_FILE, {"driver": driver}, durable=True)
        except BackendUnreachable as error:
            if not error.sent:
                raise self._not_submitted(directory, error) from error
            detail = f"the master's reply was lost: {error}"
        except (OSError, TypeError, ValueError, SubmissionError) as error:
            raise self._not_submitted(directory, error) from error
        return Submission(request.run, request.incarnation, RunState.RUNNING, detail=detail)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` in the folder, oldest first; raises BackendUnreachable."""
        return self.poll_many([run])[run]

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs: one request to the master, and one for each driver it no longer lists."""
        directories = {run: run_directories(self._staging, run) for run in runs}
        if not any(directories.values()):
            return {run: [] for run in runs}
        view = ClusterView(self._masters, self._masters.snapshot(), self._claimed)
        return {run: [_submission(view, found) for found in directories[run]] for run in runs}

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`, verified; raises KillError. The node decides the grace period."""
        directories = run_directories(self._staging, run)
        if not directories:
            return
        try:
            for directory in directories:
                directory.request_kill(grace_seconds)  # a driver that has not started will end at once
        except OSError as error:
            raise KillError(f"cannot end run {run}: {error}") from error
        asked: set[str] = set()
        wait_ended(lambda: self._end_drivers(run, directories, asked), run, _KILL_SECONDS)
        end_applications(self._masters, run)

    def logs(self, run: str) -> list[LogFile]:
        """The existing logs of every submission of `run`, oldest first; then those of executors."""
        directories = run_directories(self._staging, run)
        executors = self._executors.copy(run, directories[-1].incarnation) if directories else []
        return [log for found in directories for log in log_files(found)] + executors

    def cleanup(self, run: str) -> None:
        """Remove the directories of `run`; raises SparkRunnerError while a driver of it may be running."""
        remove_run(self._staging, run, self.find(run))
        self._executors.remove(run)

    def _end_drivers(self, run: str, directories: Sequence[RunDirectory], asked: set[str]) -> str:
        """Request the end of the remaining drivers; returns their description, empty if none is left."""
        active = {driver.id for driver in self._masters.snapshot().active_drivers}
        left = sorted(active.intersection(filter(None, map(driver_id, directories))))
        for driver in left:
            if driver not in asked:
                asked.add(driver)
                self._masters.kill_driver(driver)
        if left:
            return f"drivers {', '.join(left)}"
        here = processes_of(run)  # of a driver on this same host that its node has left behind
        for pid in here:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return f"processes {', '.join(map(str, here))}" if here else ""

    def _claimed(self) -> set[str]:
        found = set()
        for folder in (self._staging / "runs").glob("*/*"):
            with suppress(*_UNREADABLE):
                found.add(driver_id(RunDirectory(folder)) or "")
        return found

    @staticmethod
    def _not_submitted(directory: RunDirectory, error: Exception) -> SubmissionError:
        shutil.rmtree(directory.path, ignore_errors=True)  # nothing was started: `find` must list nothing
        kind = type(error) if isinstance(error, SubmissionError) else SubmissionError
        return kind(f"driver of run {directory.run} not submitted: {error}")


def _submission(view: ClusterView, directory: RunDirectory) -> Submission:
    try:
        return view.submission(directory)
    except _UNREADABLE as error:
        detail = f"cannot read {directory.path}: {error!r}"
        return Submission(directory.run, directory.incarnation, RunState.UNKNOWN, detail=detail)
