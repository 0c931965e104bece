"""Drivers that are pods of a Kubernetes cluster."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from loguru import logger

from spark_runner import exit_codes
from spark_runner.errors import SubmissionError
from spark_runner.runners.base import (
    Failure,
    LogFile,
    RunState,
    Submission,
    SubmissionPlace,
    SubmitRequest,
)
from spark_runner.runners.kubernetes.access import KubernetesCredentials
from spark_runner.runners.kubernetes.api import KubernetesApi, KubernetesError, api_url
from spark_runner.runners.kubernetes.kill import end_pods
from spark_runner.runners.kubernetes.launch import launch_pod
from spark_runner.runners.kubernetes.launcher import of_launcher
from spark_runner.runners.kubernetes.logs import PodLogs
from spark_runner.runners.kubernetes.pod import RUN_LABEL, Pod
from spark_runner.runners.kubernetes.program import program_of
from spark_runner.runners.kubernetes.secrets import old_code_selector
from spark_runner.runners.kubernetes.watch import PodWatch
from spark_runner.runners.launch import Launch
from spark_runner.runners.run_directory import RunDirectory, check_ended, run_directory
from spark_runner.runners.spark_submits import SparkSubmits

BACKEND = "kubernetes"
_LAUNCHER_GRACE_SECONDS = 2.0  # a spark-submit has nothing to tidy up
_SWEEP_SECONDS = 3600.0  # between two looks for code of past days: there is one such secret a day


class KubernetesRunner:
    """Runs drivers in one namespace of one cluster; a spark-submit of this host hands each over."""

    backend: ClassVar[str] = BACKEND

    def __init__(
        self, submits: SparkSubmits, cluster: Mapping[str, str], *, driver_main: Path, stuck_seconds: float
    ) -> None:
        self._submits = submits
        self._cluster = dict(cluster)
        self._namespace = cluster["namespace"]
        self._driver_main = driver_main
        self._stuck_seconds = stuck_seconds
        self._url, self._access = (
            api_url(cluster["master"]),
            KubernetesCredentials(cluster.get("context", "")),
        )
        self._api = KubernetesApi(self._url, self._access)
        self._watch = PodWatch(self._api, self._namespace)
        self._logs = PodLogs(self._api, self._namespace, submits.state_dir / "kubernetes-logs")
        self._ended: dict[str, Submission] = {}  # by incarnation: what was ended from here
        self._swept = -_SWEEP_SECONDS  # monotonic

    def place(self) -> SubmissionPlace:
        """The cluster and its namespace: every worker that may use it reaches what is there."""
        return SubmissionPlace(self.backend, cluster=self._cluster)

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether that is our namespace of our cluster."""
        return place.backend == self.backend and dict(place.cluster) == self._cluster

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a spark-submit that makes the pod; raises SubmissionError."""
        self._access.check(self._url)  # again: spark-submit reads the files anew, and they may have changed
        context = self._access.named_context()
        state_dir = self._submits.state_dir
        program = program_of(request, folder=state_dir / "code", driver_main=self._driver_main)

        def prepare(directory: RunDirectory) -> Launch:
            launch = launch_pod(
                request,
                program,
                directory,
                self._namespace,
                context=context,
                conf_dir=state_dir / "spark-conf",
                quick_start=self._submits.quick_start,
                passed_on=self._submits.passed_on,
            )
            try:
                # The last step before the start: of what is refused before, nothing is left.
                for secret in (program.code, program.plan):
                    self._api.create_secret(self._namespace, secret)
            except KubernetesError as error:
                raise SubmissionError(str(error)) from error
            return launch

        return self._submits.start(request, prepare)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` that the cluster or this host knows; raises KubernetesError."""
        launchers = self._submits.find(run)  # first: a pod that is not there after its end never will be
        return self._all_of(run, launchers, self._watch.list(run))

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs from what is watched; where that lacks a pod, from the cluster's store."""
        launchers = self._submits.poll_many(runs)
        pods: Sequence[Pod] | None = self._watch.pods()
        if pods is None or _is_short(launchers, pods):
            pods = self._watch.list()
        by_run = defaultdict[str, list[Pod]](list)
        for pod in pods:
            by_run[pod.run].append(pod)
        return {run: self._all_of(run, launchers[run], by_run[run]) for run in runs}

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End the spark-submit and every pod of `run`; raises KillError."""
        self._submits.kill(run, grace_seconds=min(grace_seconds, _LAUNCHER_GRACE_SECONDS))
        ended = end_pods(self._api, self._namespace, run, grace_seconds=grace_seconds, before=self._save_logs)
        for pod in ended:
            if pod.is_driver:
                self._remember(Submission(run, pod.incarnation, RunState.EXITED, exit_codes.KILLED))

    def logs(self, run: str) -> list[LogFile]:
        """Copies of the logs of its pods; of a submission without one, those of its spark-submit."""
        with contextlib.suppress(KubernetesError):  # what was copied before is still there
            self._save_logs(self._watch.list(run))
        copied = self._logs.files(run)
        known = {log.incarnation for log in copied}
        return [log for log in self._submits.logs(run) if log.incarnation not in known] + copied

    def cleanup(self, run: str) -> None:
        """Remove pods, secrets and files of `run`; raises SparkRunnerError while one may be running."""
        check_ended(run, self.find(run))
        pods = self._watch.list(run)
        for pod in pods:
            self._api.delete_pod(self._namespace, pod.name, pod.uid, grace_seconds=0)
        self._api.delete_secrets(self._namespace, f"{RUN_LABEL}={run}")
        self._submits.cleanup(run)
        self._logs.remove(run)
        self._watch.forget(run, pods)
        for incarnation in [key for key, ended in self._ended.items() if ended.run == run]:
            del self._ended[incarnation]
        self._remove_old_code()

    def _remove_old_code(self) -> None:
        """Of all versions, whichever worker made them, but for what pods mount; now and then."""
        if time.monotonic() - self._swept < _SWEEP_SECONDS:
            return
        self._swept = time.monotonic()
        try:
            in_use = {name for pod in self._watch.list() for name in pod.secrets}
            self._api.delete_secrets(self._namespace, old_code_selector(in_use))
        except KubernetesError as error:  # the run itself is cleaned up; the next sweep takes these
            logger.debug("old code in {} is not removed: {}", self._namespace, error)

    def _all_of(self, run: str, launchers: Sequence[Submission], pods: Sequence[Pod]) -> list[Submission]:
        """What pods and spark-submits say together; what the pod of a submission says goes first."""
        drivers = [pod for pod in pods if pod.is_driver]
        trouble = next((words for pod in pods if not pod.is_driver and (words := pod.trouble())), "")
        known = {
            pod.incarnation: _waiting_for(self._of_pod(pod), trouble)
            for pod in sorted((*self._watch.gone(run), *drivers), key=lambda pod: pod.created)
        }
        known |= {key: ended for key, ended in self._ended.items() if ended.run == run}
        ours = {}
        for launcher in launchers:
            found = known.get(launcher.incarnation)
            is_told = found is not None and not (_is_unexplained(found) and launcher.exit_code)
            ours[launcher.incarnation] = found if found and is_told else self._of_launcher(launcher)
        return [*(found for key, found in known.items() if key not in ours), *ours.values()]

    def _of_launcher(self, launcher: Submission) -> Submission:
        directory = run_directory(self._submits.state_dir, launcher.run, launcher.incarnation)
        return of_launcher(launcher, directory)

    def _of_pod(self, pod: Pod) -> Submission:
        if pod.has_ended or pod.stuck_seconds() < self._stuck_seconds or pod.waiting is None:
            return pod.submission()
        # It could still begin when nobody counts on it any more: so it goes first.
        self._api.delete_pod(self._namespace, pod.name, pod.uid, grace_seconds=0)
        message = f"pod {pod.name} could not begin for {self._stuck_seconds:g} s: {pod.waiting}"
        failure = Failure("submission", pod.waiting.reason, message, is_passing=True)
        self._remember(Submission(pod.run, pod.incarnation, RunState.EXITED, failure=failure))
        return self._ended[pod.incarnation]

    def _remember(self, submission: Submission) -> None:
        self._ended[submission.incarnation] = submission

    def _save_logs(self, pods: Iterable[Pod]) -> None:
        self._logs.save(pod for pod in pods if pod.is_driver or pod.executor)


def _is_short(launchers: Mapping[str, Sequence[Submission]], pods: Sequence[Pod]) -> bool:
    """Whether a pod is missing where nothing but the cluster's store can say that there is none."""
    drivers = [pod for pod in pods if pod.is_driver]
    runs, incarnations = {pod.run for pod in drivers}, {pod.incarnation for pod in drivers}
    for run, found in launchers.items():
        if run not in runs and not any(launcher.state is RunState.RUNNING for launcher in found):
            return True
        if any(each.exit_code == 0 and each.incarnation not in incarnations for each in found):
            return True
    return False


def _is_unexplained(found: Submission) -> bool:
    """Whether its spark-submit, if it failed, may know why: perhaps it took the pod back itself."""
    is_deleted = found.failure is not None and found.failure.error_class == "killed"
    return found.state is RunState.GONE or is_deleted


def _waiting_for(submission: Submission, trouble: str) -> Submission:
    """With the trouble of executors, where the driver runs and has none of its own."""
    is_well = submission.state is RunState.RUNNING and not submission.detail
    return replace(submission, detail=trouble) if is_well else submission
