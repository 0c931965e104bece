"""Ends all pods of a run and verifies that none is left."""

import time
from collections.abc import Callable, Iterable

from spark_runner.errors import KillError
from spark_runner.runners.kubernetes.api import KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes.pod import RUN_LABEL, Pod

FORCED_SECONDS = 12.0
"""After the grace period: for the node to end the containers and to report it to the API."""

_LOOK_SECONDS = 0.2
_SETTLE_SECONDS = 1.0  # for requests of an ended spark-submit that the API is still processing


def end_pods(
    api: KubernetesApi,
    namespace: str,
    run: str,
    *,
    grace_seconds: float,
    before: Callable[[Iterable[Pod]], None],
) -> list[Pod]:
    """End the driver and its executors, and return the pods that were alive; raises KillError if any remain.

    A driver creates executors until its own end, so the search repeats until no pod is left. `before`
    receives the pods that are about to be deleted.
    """
    deadline = time.monotonic() + grace_seconds + FORCED_SECONDS
    settled = time.monotonic() + _SETTLE_SECONDS
    found: dict[str, Pod] = {}
    try:
        while (live := _live(api, namespace, run)) or time.monotonic() < settled:
            new = [pod for pod in live if pod.uid not in found]
            before(new)
            for pod in new:
                found[pod.uid] = pod
                api.delete_pod(namespace, pod.name, pod.uid, grace_seconds=grace_seconds)
            if time.monotonic() > deadline:
                names = ", ".join(pod.name for pod in live)
                raise KillError(f"pods of run {run} still exist after their deletion: {names}")
            time.sleep(_LOOK_SECONDS)
    except KubernetesError as error:
        raise KillError(f"cannot verify that no pod of run {run} is left: {error}") from error
    return list(found.values())


def _live(api: KubernetesApi, namespace: str, run: str) -> list[Pod]:
    documents, _ = api.pods(namespace, f"{RUN_LABEL}={run}")
    return [pod for pod in map(Pod.of, documents) if not pod.has_ended]
