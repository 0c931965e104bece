"""The pods of one namespace, kept up to date by list and watch: to poll thousands costs nothing."""

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from loguru import logger

from spark_runner.runners.kubernetes.api import Document, KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes.pod import RUN_LABEL, Pod

IDLE_SECONDS = 60.0
"""Who has not been asked for so long stops watching."""

RETRY_SECONDS = 1.0
MAX_REMEMBERED = 1_000
"""Pods that are gone: how they ended is known here alone, and asked for within seconds."""


class PodWatch:
    """What is known of drivers and executors by now; a thread of its own follows them while somebody asks."""

    def __init__(self, api: KubernetesApi, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._lock = threading.Lock()
        self._pods: dict[str, Pod] = {}  # by uid
        self._gone: OrderedDict[str, Pod] = OrderedDict()  # by uid
        self._forgotten: OrderedDict[str, None] = OrderedDict()  # uids: their end may be told later
        self._is_following = False  # a watch is open and has told all until now
        self._asked_at = 0.0
        self._thread: threading.Thread | None = None

    def pods(self) -> list[Pod] | None:
        """All that there are; None while nobody follows them."""
        with self._lock:
            self._asked_at = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="kubernetes pods", daemon=True)
                self._thread.start()
            return list(self._pods.values()) if self._is_following else None

    def list(self, run: str = "") -> Sequence[Pod]:
        """Those of one run, or of all, in the cluster's store at this moment; raises KubernetesError."""
        documents, _ = self._api.pods(self._namespace, f"{RUN_LABEL}={run}" if run else RUN_LABEL)
        return [Pod.of(document) for document in documents]

    def gone(self, run: str) -> Sequence[Pod]:
        """The last that was seen of drivers that are gone by now."""
        with self._lock:
            return [pod for pod in self._gone.values() if pod.run == run]

    def forget(self, run: str, pods: Iterable[Pod]) -> None:
        """Nobody will ask for the pods of this run any more: these, and those that are known here."""
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
            except Exception as error:  # noqa: BLE001 - a thread that ends would leave the cache as it is for ever
                with self._lock:
                    self._is_following = False
                if isinstance(error, KubernetesError) and error.status == HTTPStatus.GONE:
                    logger.debug("pods of {}: all are listed again: {}", self._namespace, error)
                else:
                    logger.debug("pods of {} cannot be watched: {!r}", self._namespace, error)
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
                    self._bury(pod)
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
                self._bury(pod)
            else:
                self._pods[pod.uid] = pod

    def _bury(self, pod: Pod) -> None:
        if not pod.is_driver or pod.uid in self._forgotten:
            return
        # One that has only left the list, as by another label, may run on.
        if not (pod.is_deleted or pod.has_ended):
            return
        self._gone[pod.uid] = pod.gone()
        _limit(self._gone)


def _limit(remembered: OrderedDict[str, Any]) -> None:
    while len(remembered) > MAX_REMEMBERED:
        remembered.popitem(last=False)
