"""The Kubernetes backend: one runner for each namespace of each cluster."""

import importlib.util
import threading
from collections.abc import Mapping
from pathlib import Path

from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.runners.base import Runner, SparkTarget, SubmissionPlace
from spark_runner.runners.kubernetes.access import KubernetesCredentials
from spark_runner.runners.kubernetes.api import INSTALL, KubernetesApi, api_url
from spark_runner.runners.kubernetes.runner import BACKEND, KubernetesRunner
from spark_runner.runners.spark_submits import SparkSubmits

STUCK_SECONDS = 120.0
"""How long a driver may lack its image or configuration before it fails; Kubernetes itself never gives up."""


class KubernetesBackend:
    """Creates the runners that definitions and attempts need, one for each cluster and namespace."""

    def __init__(
        self, submits: SparkSubmits, *, driver_main: Path, stuck_seconds: float = STUCK_SECONDS
    ) -> None:
        self._submits = submits
        self._driver_main = driver_main.absolute()
        self._stuck_seconds = stuck_seconds
        self._runners: dict[tuple[str, ...], KubernetesRunner] = {}
        self._lock = threading.Lock()

    def runner_for(self, target: SparkTarget) -> Runner:
        """The runner of the cluster and namespace.

        Raises RefusedSubmission without the client library, and for a server other than the one that the
        worker's credentials are for.
        """
        if not _is_installed():
            raise RefusedSubmission(f"this worker has no Kubernetes client: {INSTALL}")
        options = target.options
        KubernetesCredentials(options.get("context", "")).check(api_url(target.master))
        return self._runner(
            {
                "master": target.master,
                "namespace": options.get("namespace") or "default",
                "context": options.get("context", ""),
            }
        )

    def runner_at(self, place: SubmissionPlace) -> Runner | None:
        """The runner of an earlier submission's cluster and namespace; None without the client library."""
        is_one = place.backend == BACKEND and {"master", "namespace"} <= set(place.cluster)
        return self._runner(place.cluster) if is_one and _is_installed() else None

    def places(self) -> list[SubmissionPlace]:
        """Any cluster, if the client library is installed."""
        return [SubmissionPlace(BACKEND)] if _is_installed() else []

    def _runner(self, cluster: Mapping[str, str]) -> KubernetesRunner:
        named = {name: cluster[name] for name in ("master", "namespace", "context") if cluster.get(name)}
        with self._lock:
            key = tuple(named.values())
            if key not in self._runners:
                credentials = KubernetesCredentials(named.get("context", ""))
                self._runners[key] = KubernetesRunner(
                    self._submits,
                    named,
                    KubernetesApi(api_url(named["master"]), credentials),
                    driver_main=self._driver_main,
                    stuck_seconds=self._stuck_seconds,
                )
            return self._runners[key]


def _is_installed() -> bool:
    return importlib.util.find_spec("kubernetes") is not None
