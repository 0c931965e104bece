"""Runs drivers as pods of a Kubernetes cluster."""

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from loguru import logger

from spark_runner.protocol import exit_codes
from spark_runner.runners.base import (
    Failure,
    LogFile,
    RunState,
    Submission,
    SubmissionPlace,
    SubmitRequest,
)
from spark_runner.runners.kubernetes.api import KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes.launch import PodLauncher, submission_of_launcher
from spark_runner.runners.kubernetes.logs import PodLogs
from spark_runner.runners.kubernetes.pod import RUN_LABEL, Pod
from spark_runner.runners.kubernetes.pods import PodWatch, end_pods
from spark_runner.runners.kubernetes.program import old_code_selector
from spark_runner.runners.run_directory import check_ended, run_directory
from spark_runner.runners.spark_submits import SparkSubmits

BACKEND = "kubernetes"
_LAUNCHER_GRACE_SECONDS = 2.0  # a spark-submit has nothing to clean up
_SWEEP_SECONDS = 3600.0  # between two sweeps for code of past days: each day has one such secret


class KubernetesRunner:
    """Runs drivers in one namespace of one cluster; a spark-submit on this host submits each of them."""

    backend: ClassVar[str] = BACKEND

    def __init__(
        self,
        submits: SparkSubmits,
        cluster: Mapping[str, str],
        api: KubernetesApi,
        *,
        driver_main: Path,
        stuck_seconds: float,
    ) -> None:
        self._submits = submits
        self._cluster = dict(cluster)
        self._api = api
        self._namespace = cluster["namespace"]
        self._stuck_seconds = stuck_seconds
        self._launcher = PodLauncher(submits, api, self._namespace, driver_main=driver_main)
        self._watch = PodWatch(api, self._namespace)
        self._logs = PodLogs(api, self._namespace, submits.state_dir / "kubernetes-logs")
        self._ended: dict[str, Submission] = {}  # by incarnation: the submissions that this runner ended
        self._swept = -_SWEEP_SECONDS  # monotonic

    def place(self) -> SubmissionPlace:
        """The cluster and its namespace; every worker with access to it reaches its drivers."""
        return SubmissionPlace(self.backend, cluster=self._cluster)

    def reaches(self, place: SubmissionPlace) -> bool:
        """Whether `place` is the same namespace of the same cluster."""
        return place.backend == self.backend and dict(place.cluster) == self._cluster

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a spark-submit that creates the pod; raises SubmissionError."""
        return self._launcher.submit(request)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` on the cluster or on this host; raises KubernetesError."""
        # The spark-submits first: after the end of one no pod of it can appear.
        launchers = self._submits.find(run)
        return self._all_of(run, launchers, self._watch.list(run))

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs from the watched pods; if one is missing, from the cluster's store."""
        launchers = self._submits.poll_many(runs)
        pods: Sequence[Pod] | None = self._watch.pods()
        if pods is None or _is_short(launchers, pods):
            pods = self._watch.list()
        by_run = defaultdict[str, list[Pod]](list)
        for pod in pods:
            by_run[pod.run].append(pod)
        return {run: self._all_of(run, launchers[run], by_run[run]) for run in runs}

    def kill(self, run: str, *, grace_seconds: float) -> None:
        """End the spark-submit and all pods of `run`; raises KillError."""
        self._submits.kill(run, grace_seconds=min(grace_seconds, _LAUNCHER_GRACE_SECONDS))
        ended = end_pods(self._api, self._namespace, run, grace_seconds=grace_seconds, before=self._save_logs)
        for pod in ended:
            if pod.is_driver:
                self._record_end(Submission(run, pod.incarnation, RunState.EXITED, exit_codes.KILLED))

    def logs(self, run: str) -> list[LogFile]:
        """Copies of the logs of its pods; for a submission without a pod, the logs of its spark-submit."""
        with contextlib.suppress(KubernetesError):  # earlier copies remain
            self._save_logs(self._watch.list(run))
        copied = self._logs.files(run)
        known = {log.incarnation for log in copied}
        return [log for log in self._submits.logs(run) if log.incarnation not in known] + copied

    def cleanup(self, run: str) -> None:
        """Remove pods, secrets and files of `run`; raises SparkRunnerError while a driver may be running."""
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
        """Remove the code secrets of all versions and workers that no pod mounts; once per sweep interval."""
        if time.monotonic() - self._swept < _SWEEP_SECONDS:
            return
        self._swept = time.monotonic()
        try:
            in_use = {name for pod in self._watch.list() for name in pod.secrets}
            self._api.delete_secrets(self._namespace, old_code_selector(in_use))
        except KubernetesError as error:  # the run itself is cleaned up; the next sweep retries
            logger.debug("cannot remove old code in {}: {}", self._namespace, error)

    def _all_of(self, run: str, launchers: Sequence[Submission], pods: Sequence[Pod]) -> list[Submission]:
        """The submissions from pods and spark-submits; the pod of a submission takes precedence."""
        drivers = [pod for pod in pods if pod.is_driver]
        trouble = next((words for pod in pods if not pod.is_driver and (words := pod.trouble())), "")
        known = {
            pod.incarnation: _waiting_for(self._of_pod(pod), trouble)
            for pod in sorted((*self._watch.gone(run), *drivers), key=lambda pod: pod.created)
        }
        known |= {key: ended for key, ended in self._ended.items() if ended.run == run}
        submitted_here = {}
        for launcher in launchers:
            found = known.get(launcher.incarnation)
            is_explained = found is not None and not (_is_unexplained(found) and launcher.exit_code)
            submitted_here[launcher.incarnation] = (
                found if found and is_explained else self._of_launcher(launcher)
            )
        return [
            *(found for key, found in known.items() if key not in submitted_here),
            *submitted_here.values(),
        ]

    def _of_launcher(self, launcher: Submission) -> Submission:
        directory = run_directory(self._submits.state_dir, launcher.run, launcher.incarnation)
        return submission_of_launcher(launcher, directory)

    def _of_pod(self, pod: Pod) -> Submission:
        if pod.has_ended or pod.stuck_seconds() < self._stuck_seconds or pod.waiting is None:
            return pod.submission()
        # Deleted before it is reported as failed: otherwise it could still start after the verdict.
        self._api.delete_pod(self._namespace, pod.name, pod.uid, grace_seconds=0)
        message = f"pod {pod.name} could not start for {self._stuck_seconds:g} s: {pod.waiting}"
        failure = Failure("submission", pod.waiting.reason, message, is_passing=True)
        self._record_end(Submission(pod.run, pod.incarnation, RunState.EXITED, failure=failure))
        return self._ended[pod.incarnation]

    def _record_end(self, submission: Submission) -> None:
        self._ended[submission.incarnation] = submission

    def _save_logs(self, pods: Iterable[Pod]) -> None:
        self._logs.save(pod for pod in pods if pod.is_driver or pod.executor)


def _is_short(launchers: Mapping[str, Sequence[Submission]], pods: Sequence[Pod]) -> bool:
    """Whether `pods` lacks a pod, and only the cluster's store can confirm that it does not exist."""
    drivers = [pod for pod in pods if pod.is_driver]
    runs, incarnations = {pod.run for pod in drivers}, {pod.incarnation for pod in drivers}
    for run, found in launchers.items():
        if run not in runs and not any(launcher.state is RunState.RUNNING for launcher in found):
            return True
        if any(each.exit_code == 0 and each.incarnation not in incarnations for each in found):
            return True
    return False


def _is_unexplained(found: Submission) -> bool:
    """Whether a failed spark-submit may explain the end: it may have deleted the pod itself."""
    is_deleted = found.failure is not None and found.failure.error_class == "killed"
    return found.state is RunState.GONE or is_deleted


def _waiting_for(submission: Submission, trouble: str) -> Submission:
    """The submission with the executors' trouble as its detail, if its driver runs and has no detail."""
    has_no_trouble = submission.state is RunState.RUNNING and not submission.detail
    return replace(submission, detail=trouble) if has_no_trouble else submission
