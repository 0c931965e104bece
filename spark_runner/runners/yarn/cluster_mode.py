"""Runs drivers in YARN: spark-submit submits them, and YARN then reports their state."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from spark_runner.runners.base import Failure, LogFile, RunState, Submission, SubmissionPlace, SubmitRequest
from spark_runner.runners.run_directory import check_ended, run_directory
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.submission_state import tail
from spark_runner.runners.yarn.api import ResourceManager, YarnApplication
from spark_runner.runners.yarn.kill import kill_applications
from spark_runner.runners.yarn.launch import incarnation_of, launch_on_cluster, run_tag
from spark_runner.runners.yarn.logs import YarnLogs
from spark_runner.runners.yarn.site import check_reach
from spark_runner.runners.yarn.verdict import refusal, verdict_of


class YarnClusterRunner:
    """Runs drivers in one YARN cluster; any worker that reaches the cluster can take over."""

    backend: ClassVar[str] = "yarn"

    def __init__(self, submits: SparkSubmits, manager: ResourceManager, *, driver_main: Path) -> None:
        self._submits = submits
        self._driver_main = driver_main.absolute()
        self._manager = manager
        self._logs = YarnLogs(submits.state_dir, manager)

    def place(self) -> SubmissionPlace:
        """The cluster, independent of the submitting host."""
        return SubmissionPlace(self.backend, cluster=self._manager.place)

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether `place` is this cluster."""
        return place == self.place()

    def submit(self, request: SubmitRequest) -> Submission:
        """Start the spark-submit of the driver; raises SubmissionError, also while YARN does not answer."""
        check_reach(self._manager, request.run)
        user = self._submits.user_of(request)
        return self._submits.start(
            request,
            lambda directory: launch_on_cluster(
                request,
                directory,
                driver_main=self._driver_main,
                shared_dir=self._submits.shared_dir,
                quick_start=self._submits.quick_start,
                passed_on=self._submits.passed_on,
                as_worker=user is None,
            ),
            user=user,
        )

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run`, oldest first; raises BackendUnreachable."""
        return self.poll_many([run])[run]

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs, with one request for about fifty of them; raises BackendUnreachable."""
        # In this order: YARN lists every application that was submitted before the first look.
        launchers = self._submits.poll_many(runs)
        by_tag: defaultdict[str, list[YarnApplication]] = defaultdict(list)
        for application in self._manager.applications([run_tag(run) for run in runs]):
            for tag in application.tags:
                by_tag[tag].append(application)
        return {run: self._submissions(run, launchers[run], by_tag[run_tag(run)]) for run in runs}

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End every submission of `run`, verified; raises KillError. YARN itself gives no grace."""

        def end_launchers() -> bool:
            were_there = any(found.may_run for found in self._submits.find(run))
            self._submits.kill(run, grace_seconds=min(grace_seconds, 1.0))
            return were_there

        kill_applications(self._manager, run_tag(run), end_submissions=end_launchers)

    def logs(self, run: str) -> list[LogFile]:
        """The logs of every driver of `run`; for a driver that never started, those of its spark-submit."""
        found, executors = list[LogFile](), list[LogFile]()
        submitted = set()
        for application in self._manager.applications([run_tag(run)]):
            incarnation = incarnation_of(application.tags)
            if copies := self._logs.copy(run, incarnation, application):
                submitted.add(incarnation)
                found += copies
                executors = self._logs.executors.copy(run, incarnation, application)
        own = [log for log in self._submits.logs(run) if log.incarnation not in submitted]
        return own + found + executors

    def cleanup(self, run: str) -> None:
        """Remove this host's files of `run`; raises SparkRunnerError while a driver may be running."""
        check_ended(run, self.find(run))
        self._submits.cleanup(run)
        self._logs.remove(run)

    def _submissions(
        self, run: str, launchers: Sequence[Submission], applications: Sequence[YarnApplication]
    ) -> list[Submission]:
        submitted = {incarnation_of(found.tags): found for found in applications}
        known = {launcher.incarnation for launcher in launchers}
        of_other_hosts = [incarnation for incarnation in submitted if incarnation not in known]
        return [
            *(self._submission(run, incarnation, submitted[incarnation]) for incarnation in of_other_hosts),
            *(
                self._submission(run, launcher.incarnation, submitted[launcher.incarnation])
                if launcher.incarnation in submitted
                else self._not_submitted(launcher)
                for launcher in launchers
            ),
        ]

    def _submission(self, run: str, incarnation: str, application: YarnApplication) -> Submission:
        verdict = verdict_of(application)
        state, exit_code = verdict.state, verdict.exit_code
        outcome = self._logs.outcome(application) if application.has_ended else None
        if state is RunState.UNKNOWN and outcome is not None:  # the driver's outcome settles it
            state, exit_code = RunState.EXITED, outcome.get("exit_code")
        detail = f"{application.id}: {verdict.detail}" if verdict.detail else application.id
        return Submission(
            run,
            incarnation,
            state,
            exit_code,
            detail,
            outcome,
            verdict.failure,
            ended=application.finished,
            is_end_observed=verdict.is_end_observed,
        )

    def _not_submitted(self, launcher: Submission) -> Submission:
        """A submission that YARN does not list: in progress, refused, or no longer listed."""
        launcher = replace(launcher, is_end_observed=False)  # spark-submit ended, not the driver
        if launcher.state is not RunState.EXITED:
            return launcher
        if launcher.exit_code == 0:
            detail = "YARN accepted its application and no longer lists it"
            return replace(launcher, state=RunState.GONE, exit_code=None, detail=detail)
        words = self._last_words(launcher)
        failure = (
            launcher.failure
            or refusal(words)
            or Failure(
                "submission",
                "SparkSubmit",
                f"spark-submit ended with exit code {launcher.exit_code}: {_last_line(words)}",
                is_passing=True,
            )
        )
        return replace(launcher, failure=failure, detail=failure.message)

    def _last_words(self, launcher: Submission) -> str:
        directory = run_directory(self._submits.state_dir, launcher.run, launcher.incarnation)
        return tail(directory.path / "stderr.log")


def _last_line(words: str) -> str:
    """The line of Java's last output that gives the cause."""
    lines = [line for line in words.splitlines() if line.strip() and not line.startswith(("\t", "    at "))]
    return lines[-1].strip() if lines else "it printed nothing"
