"""The pods of one namespace: kept up to date by list and watch, and ended, verified."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any

from loguru import logger

from spark_runner.protocol.errors import KillError
from spark_runner.runners.kubernetes.api import Document, KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes.pod import RUN_LABEL, Pod

IDLE_SECONDS = 60.0
"""The watch ends when no caller has asked for this time."""

RETRY_SECONDS = 1.0
MAX_REMEMBERED = 1_000
"""Limit for pods that are gone: only this cache has their end, and callers ask for it within seconds."""


class PodWatch:
    """The current state of drivers and executors; a thread follows them while callers ask."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._lock = threading.Lock()
        self._pods: dict[str, Pod] = {}  # by uid
        self._gone: OrderedDict[str, Pod] = OrderedDict()  # by uid
        self._forgotten: OrderedDict[str, None] = OrderedDict()  # uids: the watch may report their end later
        self._is_following = False  # a watch is open and current
        self._asked_at = 0.0
        self._thread: threading.Thread | None = None

    def pods(self) -> list[Pod] | None:
        """All pods; None while no watch is open."""
        with self._lock:
            self._asked_at = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="kubernetes pods", daemon=True)
                self._thread.start()
            return list(self._pods.values()) if self._is_following else None

    def list(self, run: str = "") -> Sequence[Pod]:
        """The pods of one run, or of all runs, from the cluster's store now; raises KubernetesError."""
        documents, _ = self._api.pods(self._namespace, f"{RUN_LABEL}={run}" if run else RUN_LABEL)
        return [Pod.of(document) for document in documents]

    def gone(self, run: str) -> Sequence[Pod]:
        """The last known state of the run's drivers that are gone."""
        with self._lock:
            return [pod for pod in self._gone.values() if pod.run == run]

    def forget(self, run: str, pods: Iterable[Pod]) -> None:
        """Drop the pods of a run that was cleaned up: these, and those in the cache."""
        with self._lock:
            known = (pod for pod in (*self._pods.values(), *self._gone.values()) if pod.run == run)
            for uid in {pod.uid for pod in (*pods, *known)}:
                self._gone.pop(uid, None)
                self._forgotten[uid] = None
            _limit(self._forgotten)

    def _follow(self) -> None:
        version = ""
        while self._is_wanted():
            try:
                version = version or self._start_again()
                version = self._watch(version)
            except Exception as error:  # noqa: BLE001 - if the thread ended, the cache would never change again
                with self._lock:
                    self._is_following = False
                if isinstance(error, KubernetesError) and error.status == HTTPStatus.GONE:
                    logger.debug(
                        "the watch on pods of {} expired, listing them again: {}", self._namespace, error
                    )
                else:
                    logger.debug("cannot watch the pods of {}: {!r}", self._namespace, error)
                    time.sleep(RETRY_SECONDS)
                version = ""

    def _is_wanted(self) -> bool:
        with self._lock:
            wanted = time.monotonic() - self._asked_at < IDLE_SECONDS
            if not wanted:
                self._is_following, self._thread = False, None
            return wanted

    def _start_again(self) -> str:
        documents, version = self._api.pods(self._namespace, RUN_LABEL)
        pods = {pod.uid: pod for pod in map(Pod.of, documents)}
        with self._lock:
            for uid, pod in self._pods.items():
                if uid not in pods:
                    self._keep_gone(pod)
            self._pods = pods
            self._is_following = True
        return version

    def _watch(self, version: str) -> str:
        for event in self._api.watch_pods(self._namespace, RUN_LABEL, version):
            version = event["object"]["metadata"]["resourceVersion"]
            self._take(event)
        return version

    def _take(self, event: Document) -> None:
        if event["type"] == "BOOKMARK":
            return
        pod = Pod.of(event["object"])
        with self._lock:
            if event["type"] == "DELETED":
                self._pods.pop(pod.uid, None)
                self._keep_gone(pod)
            else:
                self._pods[pod.uid] = pod

    def _keep_gone(self, pod: Pod) -> None:
        if not pod.is_driver or pod.uid in self._forgotten:
            return
        # A pod that only left the list, for example by a changed label, may still run.
        if not (pod.is_deleted or pod.has_ended):
            return
        self._gone[pod.uid] = pod.gone()
        _limit(self._gone)


def _limit(remembered: OrderedDict[str, Any]) -> None:
    while len(remembered) > MAX_REMEMBERED:
        remembered.popitem(last=False)


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
