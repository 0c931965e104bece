"""Drivers that are pods of a Kubernetes cluster."""

import contextlib
import importlib.util
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from spark_runner import exit_codes
from spark_runner.errors import RefusedSubmission, SparkRunnerError, SubmissionError
from spark_runner.runners.base import (
    Failure,
    LogFile,
    Place,
    Runner,
    RunState,
    Submission,
    SubmitRequest,
    Target,
)
from spark_runner.runners.kubernetes_api import INSTALL, KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes_kill import end_pods
from spark_runner.runners.kubernetes_launch import (
    CODE,
    PLAN,
    code_secret,
    launch_pod,
    plan_secret,
    version_zip,
)
from spark_runner.runners.kubernetes_launcher import of_launcher
from spark_runner.runners.kubernetes_logs import PodLogs
from spark_runner.runners.kubernetes_pod import RUN_LABEL, DriverPod
from spark_runner.runners.kubernetes_watch import PodWatch
from spark_runner.runners.launch import Launch
from spark_runner.runners.run_directory import RunDirectory, run_directory
from spark_runner.runners.spark_submits import SparkSubmits

BACKEND = "kubernetes"
STUCK_SECONDS = 120.0
"""A driver whose image or configuration is not to be had for so long is given up: Kubernetes never does."""

_LAUNCHER_GRACE_SECONDS = 2.0  # a spark-submit has nothing to tidy up


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
        self._api = KubernetesApi(cluster["master"].removeprefix("k8s://"), cluster.get("context", ""))
        self._watch = PodWatch(self._api, self._namespace)
        self._logs = PodLogs(self._api, self._namespace, submits.state_dir / "kubernetes-logs")
        self._ended: dict[str, Submission] = {}  # by incarnation: what was ended from here

    def place(self) -> Place:
        """The cluster and its namespace: every worker that may use it reaches what is there."""
        return Place(self.backend, cluster=self._cluster)

    def reaches(self, place: Place) -> bool:
        """Whether that is our namespace of our cluster."""
        return place.backend == self.backend and dict(place.cluster) == self._cluster

    def submit(self, request: SubmitRequest) -> Submission:
        """Start a spark-submit that makes the pod; raises SubmissionError."""
        code = code_secret(version_zip(self._submits.state_dir), self._driver_main)
        plan = plan_secret(request)
        mounted = {code["metadata"]["name"]: CODE, plan["metadata"]["name"]: PLAN}
        conf_dir = self._submits.state_dir / "spark-conf"

        def prepare(directory: RunDirectory) -> Launch:
            launch = launch_pod(request, directory, self._namespace, conf_dir, mounted)
            try:
                for secret in (
                    code,
                    plan,
                ):  # last: nothing is left of a refused one
                    self._api.create_secret(self._namespace, secret)
            except KubernetesError as error:
                raise SubmissionError(str(error)) from error
            return launch

        return self._submits.start(request, prepare)

    def find(self, run: str) -> list[Submission]:
        """Every submission of `run` that the cluster or this host knows; raises KubernetesError."""
        launchers = self._submits.find(run)  # first: a pod that is not there after its end never will be
        return self._all_of(run, launchers, self._watch.list())

    def poll_many(self, runs: Sequence[str]) -> dict[str, list[Submission]]:
        """`find` for many runs from what is watched; where that lacks a pod, from the cluster's store."""
        launchers = self._submits.poll_many(runs)
        pods: Sequence[DriverPod] | None = self._watch.pods()
        if pods is None or _is_short(launchers, pods):
            pods = self._watch.list()
        return {run: self._all_of(run, launchers[run], pods) for run in runs}

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
            self._save_logs(pod for pod in self._watch.list() if pod.run == run)
        copied = self._logs.files(run)
        known = {log.incarnation for log in copied}
        return [log for log in self._submits.logs(run) if log.incarnation not in known] + copied

    def cleanup(self, run: str) -> None:
        """Remove pods, secrets and files of `run`; raises SparkRunnerError while one may be running."""
        for submission in self.find(run):
            if submission.state in {RunState.RUNNING, RunState.UNKNOWN}:
                raise SparkRunnerError(f"run {run} is {submission.state}: kill it before it is removed")
        selector = f"{RUN_LABEL}={run}"
        for document in self._api.pods(self._namespace, selector)[0]:
            pod = DriverPod.of(document)
            self._api.delete_pod(self._namespace, pod.name, pod.uid, grace_seconds=0)
        self._api.delete_secrets(self._namespace, selector)
        self._submits.cleanup(run)
        self._logs.remove(run)
        self._watch.forget(run)
        for incarnation in [key for key, ended in self._ended.items() if ended.run == run]:
            del self._ended[incarnation]

    def _all_of(
        self, run: str, launchers: Sequence[Submission], pods: Sequence[DriverPod]
    ) -> list[Submission]:
        """What pods and spark-submits say together; what the pod of a submission says goes first."""
        known = {
            pod.incarnation: self._of_pod(pod)
            for pod in sorted((*self._watch.gone(), *pods), key=lambda pod: pod.created)
            if pod.run == run
        }
        known |= {key: ended for key, ended in self._ended.items() if ended.run == run}
        ours = {
            launcher.incarnation: known.get(launcher.incarnation) or self._of_launcher(launcher)
            for launcher in launchers
        }
        return [*(found for key, found in known.items() if key not in ours), *ours.values()]

    def _of_launcher(self, launcher: Submission) -> Submission:
        directory = run_directory(self._submits.state_dir, launcher.run, launcher.incarnation)
        return of_launcher(launcher, directory)

    def _of_pod(self, pod: DriverPod) -> Submission:
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

    def _save_logs(self, pods: Iterable[DriverPod]) -> None:
        self._logs.save(pod for pod in pods if pod.is_driver)


def _is_short(launchers: Mapping[str, Sequence[Submission]], pods: Sequence[DriverPod]) -> bool:
    """Whether a pod is missing where nothing but the cluster's store can say that there is none."""
    runs, incarnations = {pod.run for pod in pods}, {pod.incarnation for pod in pods}
    for run, found in launchers.items():
        if run not in runs and not any(launcher.state is RunState.RUNNING for launcher in found):
            return True
        if any(each.exit_code == 0 and each.incarnation not in incarnations for each in found):
            return True
    return False


class KubernetesBackend:
    """A runner for each namespace of each cluster that definitions name."""

    def __init__(
        self, submits: SparkSubmits, *, driver_main: Path, stuck_seconds: float = STUCK_SECONDS
    ) -> None:
        self._submits = submits
        self._driver_main = driver_main.absolute()
        self._stuck_seconds = stuck_seconds
        self._runners: dict[tuple[str, ...], KubernetesRunner] = {}
        self._lock = threading.Lock()

    def runner_for(self, target: Target) -> Runner:
        """The runner of the cluster and namespace; raises RefusedSubmission without the client library."""
        if not _is_installed():
            raise RefusedSubmission(f"this worker has no client of Kubernetes: {INSTALL}")
        options = target.options
        return self._runner(
            {
                "master": target.master,
                "namespace": options.get("namespace") or "default",
                "context": options.get("context", ""),
            }
        )

    def runner_at(self, place: Place) -> Runner | None:
        """The runner of a cluster and namespace that a definition named before."""
        is_one = place.backend == BACKEND and {"master", "namespace"} <= set(place.cluster)
        return self._runner(place.cluster) if is_one and _is_installed() else None

    def places(self) -> list[Place]:
        """Any cluster."""
        return [Place(BACKEND)] if _is_installed() else []

    def _runner(self, cluster: Mapping[str, str]) -> KubernetesRunner:
        named = {name: cluster[name] for name in ("master", "namespace", "context") if cluster.get(name)}
        with self._lock:
            key = tuple(named.values())
            if key not in self._runners:
                self._runners[key] = KubernetesRunner(
                    self._submits, named, driver_main=self._driver_main, stuck_seconds=self._stuck_seconds
                )
            return self._runners[key]


def _is_installed() -> bool:
    return importlib.util.find_spec("kubernetes") is not None
