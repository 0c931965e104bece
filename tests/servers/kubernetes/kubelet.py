"""A node for tests: runs each pod of the cluster as a process of this host.

Implements the scheduler, the kubelet and the controllers of a job's pods, as far as tests need them.
"""

import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import urllib3
from loguru import logger

from tests.servers.kubernetes.api import Api, ApiError, Document
from tests.servers.kubernetes.log_server import LogServer
from tests.servers.kubernetes.pod import Fate, PodThread
from tests.servers.kubernetes.quantities import bytes_of
from tests.waiting import wait_until

NODE = "node-of-tests"
NODE_MEMORY = "64Gi"
WATCH_S = 5
END_S = 30
_PODS = "/api/v1/pods"


class Kubelet:
    """Runs the pods of all namespaces; needs its own folder."""

    def __init__(self, api: Api, folder: Path) -> None:
        self._api = api
        self._folder = folder
        self._threads: dict[str, PodThread] = {}  # by uid
        self._names: dict[tuple[str, str], str] = {}  # namespace and name -> uid
        self._addresses: set[str] = set()
        self._stopping = threading.Event()
        self._away = threading.Event()
        self._loop = threading.Thread(target=self._supervise, name="kubelet", daemon=True)
        self._logs = LogServer(folder, self._log_of)

    def start(self) -> None:
        self._logs.start()
        self._register()
        self._loop.start()

    def stop(self) -> None:
        """End all pods at once; the API may be down."""
        self._stopping.set()
        self._loop.join(END_S)
        for thread in self._threads.values():
            thread.abandon()
        for thread in self._threads.values():
            thread.join(END_S)
        self._logs.stop()

    def oom_kill(self, namespace: str, pod: str) -> None:
        """As the kernel does to a container that exceeds its memory limit."""
        self._thread(namespace, pod).meet(Fate(container_reason="OOMKilled"))

    def evict(self, namespace: str, pod: str) -> None:
        """As a kubelet does when its node runs out of memory."""
        self._thread(namespace, pod).meet(
            Fate(pod_reason="Evicted", message="The node was low on resource: memory.")
        )

    def preempt(self, namespace: str, pod: str) -> None:
        """As the scheduler does for a pod of a higher priority."""
        self._disrupt(namespace, pod, "PreemptionByScheduler", "preempted by one of a higher priority")
        self._api.delete(_path(namespace, pod))

    def lose_node(self, namespace: str, pod: str) -> None:
        """Lose the node of this pod: it sends no status any more, and the cluster deletes the pod."""
        thread = self._thread(namespace, pod)
        thread.meet(Fate(silent=True))
        thread.join(END_S)
        message = f"Node {NODE} which was running pod {pod} is unresponsive"
        status: Document = {"reason": "NodeLost", "message": message}
        self._api.patch(f"{_path(namespace, pod)}/status", {"status": status})
        self._disrupt(namespace, pod, "DeletionByTaintManager", "Taint manager: deleting it")
        self._api.patch(f"{_path(namespace, pod)}/status", {"status": {"phase": "Failed"}})
        self._api.delete(_path(namespace, pod), grace_seconds=0)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Disconnect the node for the time of the context; its pods continue."""
        self._away.set()
        try:
            yield
        finally:
            self._away.clear()

    def _disrupt(self, namespace: str, pod: str, reason: str, message: str) -> None:
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
        self._api.patch(f"{_path(namespace, pod)}/status", {"status": {"conditions": [condition]}})

    def _thread(self, namespace: str, pod: str) -> PodThread:
        return wait_until(
            lambda: self._threads.get(self._names.get((namespace, pod), "")),
            END_S,
            f"pod {pod} runs on the node",
        )

    def _log_of(self, namespace: str, pod: str) -> tuple[Path, Callable[[], bool]] | None:
        thread = self._threads.get(self._names.get((namespace, pod), ""))
        return (thread.log, thread.is_alive) if thread else None

    def _register(self) -> None:
        self._api.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        status = {
            "capacity": {"cpu": "64", "memory": NODE_MEMORY, "pods": "500"},
            "allocatable": {"cpu": "64", "memory": NODE_MEMORY, "pods": "500"},
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._logs.port}},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        }
        self._api.patch(f"/api/v1/nodes/{NODE}/status", {"status": status})

    def _supervise(self) -> None:
        while not self._stopping.is_set():
            if self._away.is_set():
                self._stopping.wait(0.1)
                continue
            try:
                self._list_and_watch()
            except (ApiError, urllib3.exceptions.HTTPError) as error:
                logger.debug("test kubelet: {}", error)  # the API is down, or the version is too old
                self._stopping.wait(0.2)

    def _list_and_watch(self) -> None:
        listed = self._api.get(_PODS)
        there = {pod["metadata"]["uid"] for pod in listed["items"]}
        for uid in set(self._threads) - there:
            self._drop(uid)
        for pod in listed["items"]:
            self._look_at(pod)
        for event in self._api.watch(_PODS, listed["metadata"]["resourceVersion"], WATCH_S):
            if self._stopping.is_set() or self._away.is_set():
                return
            if event["type"] == "DELETED":
                self._drop(event["object"]["metadata"]["uid"])
            else:
                self._look_at(event["object"])

    def _look_at(self, pod: Document) -> None:
        metadata = pod["metadata"]
        uid = metadata["uid"]
        is_deleted = bool(metadata.get("deletionTimestamp"))
        if thread := self._threads.get(uid):
            if is_deleted and not thread.deleted:
                thread.end(metadata.get("deletionGracePeriodSeconds", 0), deleted=True)
        elif is_deleted:
            self._api.delete(_path(metadata["namespace"], metadata["name"]), grace_seconds=0, uid=uid)
        elif pod["status"].get("phase") == "Pending" and self._bind(pod):
            folder = self._folder / uid
            folder.mkdir()
            thread = PodThread(self._api, pod, folder, self._address())
            self._threads[uid] = thread
            self._names[metadata["namespace"], metadata["name"]] = uid
            thread.start()

    def _bind(self, pod: Document) -> bool:
        """As a scheduler: bind the pod to this node; returns whether it is on it."""
        metadata, spec = pod["metadata"], pod["spec"]
        if spec.get("nodeName"):
            return True
        path = _path(metadata["namespace"], metadata["name"])
        if reason := _unschedulable_reason(spec):
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            condition["message"] = reason
            if reason not in str(pod["status"].get("conditions")):
                self._api.patch(f"{path}/status", {"status": {"conditions": [condition]}})
            return False
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        try:
            self._api.create(f"{path}/binding", {"metadata": {"name": metadata["name"]}, "target": target})
        except ApiError as error:
            if error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                return False  # deleted or changed: the next event has the new state
            raise
        return True

    def _drop(self, uid: str) -> None:
        if thread := self._threads.pop(uid, None):
            thread.end(0)
            thread.join(END_S)
            shutil.rmtree(self._folder / uid, ignore_errors=True)

    def _address(self) -> str:
        """A separate loopback address for each pod: Spark's ports are the same in all pods."""
        while True:
            parts = (random.randint(64, 191), random.randint(0, 255), random.randint(1, 254))  # noqa: S311
            address = ".".join(map(str, (127, *parts)))
            if address not in self._addresses:
                self._addresses.add(address)
                return address


def _unschedulable_reason(spec: Document) -> str:
    """The reason why a scheduler cannot place such a pod; empty if it can."""
    if spec.get("nodeSelector"):
        return "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    wanted = sum(
        bytes_of(container.get("resources", {}).get("requests", {}).get("memory", "0"))
        for container in spec["containers"]
    )
    if wanted > bytes_of(NODE_MEMORY):
        return "0/1 nodes are available: 1 Insufficient memory."
    return ""


def _path(namespace: str, pod: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{pod}"
