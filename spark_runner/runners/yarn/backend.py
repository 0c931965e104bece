"""YARN: the cluster of a job, and the runner of each deploy mode; in client mode drivers are on this host."""

import getpass
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from spark_runner.protocol.errors import BackendUnreachable, RefusedSubmission
from spark_runner.runners.base import (
    LogFile,
    Runner,
    RunState,
    SparkTarget,
    Submission,
    SubmissionPlace,
    SubmitRequest,
)
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.yarn.api import URLS, ResourceManager
from spark_runner.runners.yarn.cluster_mode import YarnClusterRunner
from spark_runner.runners.yarn.kill import kill_applications
from spark_runner.runners.yarn.launch import incarnation_of, incarnation_tag, run_tag, yarn_properties
from spark_runner.runners.yarn.logs import YarnLogs
from spark_runner.runners.yarn.site import check_reach, conf_dir, needs_kerberos, resource_manager_urls
from spark_runner.runners.yarn.verdict import APPLICATION_FAILED, verdict_of


class YarnClientRunner:
    """Runs drivers on this host, with executors in one YARN cluster."""

    backend: ClassVar[str] = "yarn"

    def __init__(self, submits: SparkSubmits, manager: ResourceManager, *, driver_main: Path) -> None:
        self._submits = submits
        self._driver_main = driver_main.absolute()
        self._manager = manager
        self._logs = YarnLogs(submits.state_dir, manager)

    def place(self) -> SubmissionPlace:
        """This host and the cluster; raises SubmissionError without a usable state directory."""
        return self._submits.place(self.backend, self._manager.place)

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether `place` is this state directory on this host, with this cluster."""
        here = self.place()
        return here.is_at(place) and here.cluster == place.cluster

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a driver under its own shim; raises SubmissionError, also while YARN does not answer."""
        check_reach(self._manager, request.run)
        conf = yarn_properties(request, self._submits.shared_dir / "driver")
        return self._submits.start_driver(replace(request, conf=conf), self._driver_main)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run`, oldest first: drivers are processes of this host."""
        return self.poll_many([run])[run]

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs; for failed drivers without an outcome, YARN gives the cause."""
        found = self._submits.poll_many(runs)
        return {run: [self._explained(submission) for submission in found[run]] for run in runs}

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every driver of `run` and its application, verified; raises KillError."""

        def end_drivers() -> bool:
            were_there = any(found.may_run for found in self._submits.find(run))
            self._submits.kill(run, grace_seconds=grace_seconds)
            return were_there

        # The driver first: within its grace period it ends its application in order.
        were_there = end_drivers()
        kill_applications(self._manager, run_tag(run), end_submissions=lambda: were_there)

    def logs(self, run: str) -> list[LogFile]:
        """The existing logs of every driver of `run`, oldest first; then those of executors."""
        executors = list[LogFile]()
        with suppress(BackendUnreachable):
            for application in self._manager.applications([run_tag(run)]):
                incarnation = incarnation_of(application.tags)
                executors = self._logs.executors.copy(run, incarnation, application)
        return self._submits.logs(run) + executors

    def cleanup(self, run: str) -> None:
        """Remove the directories of `run`; raises SparkRunnerError while a driver of it may be running."""
        self._submits.cleanup(run)
        self._logs.remove(run)

    def _explained(self, submission: Submission) -> Submission:
        if submission.state is not RunState.EXITED or not submission.exit_code or submission.outcome:
            return submission
        try:
            applications = self._manager.applications([incarnation_tag(submission.incarnation)])
        except BackendUnreachable:
            return submission  # only this host's facts are available
        # The driver's end makes the application fail; only another cause adds information.
        causes = [cause for found in applications if (cause := verdict_of(found).failure)]
        named = [cause for cause in causes if cause.type != APPLICATION_FAILED]
        return replace(submission, failure=named[-1]) if named else submission


class YarnBackend:
    """The YARN clusters that Hadoop's configuration, definitions or earlier attempts name."""

    def __init__(self, submits: SparkSubmits, *, driver_main: Path) -> None:
        self._submits = submits
        self._driver_main = driver_main
        self._managers: dict[tuple[str, ...], ResourceManager] = {}
        self._runners: dict[tuple[ResourceManager, bool], Runner] = {}

    def runner_for(self, target: SparkTarget) -> Runner:
        """The runner of the cluster that HADOOP_CONF_DIR names; raises RefusedSubmission, NotConfigured.

        The option `resource_manager` gives the address of its web pages, if yarn-site.xml does not.
        """
        folder = conf_dir(os.environ)
        if needs_kerberos(folder):
            raise RefusedSubmission(
                f"YARN's web services require Kerberos (SPNEGO), as {folder} says: that is not supported"
            )
        given = [url.strip() for url in target.options.get("resource_manager", "").split(",") if url.strip()]
        for url in given:
            if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).netloc:
                raise RefusedSubmission(f"resource_manager {url!r} is not an address: write http://host:8088")
        return self._runner(
            given or resource_manager_urls(folder), on_cluster=target.deploy_mode == "cluster"
        )

    def runner_at(self, place: SubmissionPlace) -> Runner | None:
        """The runner that can see and stop submissions at `place`; None if no runner here can."""
        urls = [url for url in place.cluster.get(URLS, "").split(",") if url]
        if not urls:
            return None
        runner = self._runner(urls, on_cluster=not place.host)
        return runner if runner.reaches(place) else None

    def places(self) -> list[SubmissionPlace]:
        """Any cluster, and this host for drivers in client mode."""
        return [SubmissionPlace("yarn"), self._submits.place("yarn")]

    def _runner(self, urls: Sequence[str], *, on_cluster: bool) -> Runner:
        manager = self._managers.setdefault(tuple(urls), ResourceManager(urls, user=user_name()))
        if (manager, on_cluster) not in self._runners:
            kind = YarnClusterRunner if on_cluster else YarnClientRunner
            self._runners[manager, on_cluster] = kind(self._submits, manager, driver_main=self._driver_main)
        return self._runners[manager, on_cluster]


def user_name() -> str:
    """The user that Hadoop's clients act as without authentication."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
