"""Ending all pods of a run, verified."""

import time
from collections.abc import Callable, Iterable

from spark_runner.errors import KillError
from spark_runner.runners.kubernetes.api import KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes.pod import RUN_LABEL, Pod

FORCED_SECONDS = 12.0
"""Beyond the grace: for the node to end the containers, and to tell the API."""

_LOOK_SECONDS = 0.2
_SETTLE_SECONDS = 1.0  # for what an ended spark-submit had sent before, and the API is still working on


def end_pods(
    api: KubernetesApi,
    namespace: str,
    run: str,
    *,
    grace_seconds: float,
    before: Callable[[Iterable[Pod]], None],
) -> list[Pod]:
    """End driver and executors; the pods that were alive. Raises KillError with those that still are.

    A driver makes executors until its own end: they are looked for until none is left. `before` gets to see
    those that are about to be deleted.
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
                raise KillError(f"pods of run {run} are still there after their deletion: {names}")
            time.sleep(_LOOK_SECONDS)
    except KubernetesError as error:
        raise KillError(f"whether pods of run {run} are left is not known: {error}") from error
    return list(found.values())


def _live(api: KubernetesApi, namespace: str, run: str) -> list[Pod]:
    documents, _ = api.pods(namespace, f"{RUN_LABEL}={run}")
    return [pod for pod in map(Pod.of, documents) if not pod.has_ended]
