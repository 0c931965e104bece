"""Standalone clusters: the runner of each deploy mode; in client mode the driver is on this host."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import ClassVar

from spark_runner.protocol.errors import BackendUnreachable, RefusedSubmission, SubmissionError
from spark_runner.runners.base import (
    LogFile,
    Runner,
    RunState,
    SparkTarget,
    Submission,
    SubmissionPlace,
    SubmitRequest,
)
from spark_runner.runners.run_directory import run_directories
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.standalone.address import StandaloneCluster
from spark_runner.runners.standalone.api import Snapshot
from spark_runner.runners.standalone.applications import application_wait_reason, end_applications
from spark_runner.runners.standalone.cluster_mode import ClusterModeRunner
from spark_runner.runners.standalone.executor_logs import StandaloneExecutorLogs
from spark_runner.runners.standalone.launch import application_name, note_staging, with_core_limit


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


_NAME = "standalone"
_ID = "id"


class StandaloneBackend:
    """Has two runners for each cluster, one of each deploy mode.

    `driver_main` is the file that spark-submit runs. Drivers in cluster mode write their files to the state
    directory of `submits` too, unless a definition names another folder.
    """

    def __init__(self, submits: SparkSubmits, *, driver_main: Path) -> None:
        self._submits = submits
        self._driver_main = driver_main
        self._clients: dict[StandaloneCluster, ClientModeRunner] = {}
        self._clusters: dict[tuple[StandaloneCluster, Path], ClusterModeRunner] = {}

    def runner_for(self, target: SparkTarget) -> Runner:
        """The runner for a definition's target; raises RefusedSubmission if there can be none."""
        cluster = StandaloneCluster.of(target)
        if target.deploy_mode == "client":
            return self._client(cluster)
        staging = Path(target.options.get("staging") or self._submits.state_dir)
        if not staging.is_absolute():
            raise RefusedSubmission(f"`staging` must be an absolute path that all nodes see: {staging}")
        return self._on_cluster(cluster, staging)

    def runner_at(self, place: SubmissionPlace) -> Runner | None:
        """The runner that can see and stop submissions at `place`; None if no runner here can."""
        try:
            cluster = StandaloneCluster.at(place.cluster)
        except KeyError:
            return None
        if place.host:
            return self._client(cluster) if self._submits.reaches(place) else None
        return self._on_cluster(cluster, Path(place.cluster["staging"])) if _sees(place.cluster) else None

    def places(self) -> list[SubmissionPlace]:
        """This host for client mode, and any cluster."""
        return [self._submits.place(_NAME), SubmissionPlace(_NAME)]

    def _client(self, cluster: StandaloneCluster) -> ClientModeRunner:
        if cluster not in self._clients:
            self._clients[cluster] = ClientModeRunner(cluster, self._submits, driver_main=self._driver_main)
        return self._clients[cluster]

    def _on_cluster(self, cluster: StandaloneCluster, staging: Path) -> ClusterModeRunner:
        key = (cluster, staging)
        if key not in self._clusters:
            note_staging(self._submits.state_dir, staging)
            self._clusters[key] = ClusterModeRunner(cluster, staging, driver_main=self._driver_main)
        return self._clusters[key]


def _sees(cluster: Mapping[str, str]) -> bool:
    """Whether this host has the same folder under the path of that place."""
    try:
        return Path(cluster["staging"], _ID).read_text(encoding="utf-8").strip() == cluster["store"]
    except (OSError, ValueError, KeyError):
        return False
