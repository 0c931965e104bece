"""The test server behaves as Kubernetes: a real API, and pods that run, end, are refused, leave nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil
import pytest

from tests.servers.kubernetes.api import ApiError, Document
from tests.servers.kubernetes.container import POD_MARK
from tests.servers.kubernetes.fixtures import Kubernetes
from tests.waiting import wait_until

# The API server is built where it is not in the cache yet.
pytestmark = pytest.mark.timeout(1800)

END_S = 120


@dataclass(frozen=True)
class Pods:
    """Pods of plain programs in one namespace."""

    cluster: Kubernetes
    namespace: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def start(self, name: str, command: Sequence[str], image: str = "any", **spec: object) -> None:
        container = {"name": "main", "image": image, "command": list(command), **spec}
        body = {"metadata": {"name": name}, "spec": {"containers": [container], "restartPolicy": "Never"}}
        self.cluster.api.create(self.path, body)

    def wait(self, name: str, what: str, is_so: Callable[[Document], object]) -> Document:
        def pod() -> Document | None:
            found = self.cluster.pod(self.namespace, name)
            return found if found and is_so(found) else None

        return wait_until(pod, END_S, f"pod {name}: {what}")

    def ended(self, name: str) -> Document:
        return self.wait(name, "ended", lambda pod: pod["status"]["phase"] in {"Succeeded", "Failed"})

    def running(self, name: str) -> Document:
        return self.wait(name, "running", lambda pod: pod["status"]["phase"] == "Running")


@pytest.fixture
def pods(kubernetes: Kubernetes, kubernetes_namespace: str) -> Pods:
    return Pods(kubernetes, kubernetes_namespace)


def terminated(pod: Document) -> Document:
    ended: Document = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return ended


def processes(uid: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(POD_MARK) == uid:
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_a_deleted_pod_gets_a_term_and_after_its_grace_no_process_of_it_is_left(pods: Pods) -> None:
    polite = ["sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"]
    deaf = ["sh", "-c", "trap '' TERM; (trap '' TERM; sleep 600) & echo up; while :; do sleep 1; done"]
    pods.start("polite", polite)
    pods.start("deaf", deaf)
    uids = {name: pods.running(name)["metadata"]["uid"] for name in ("polite", "deaf")}
    wait_until(lambda: len(processes(uids["deaf"])) > 1, 10, "its processes run")
    for name in uids:
        pods.cluster.api.delete(f"{pods.path}/{name}", grace_seconds=2)
    for name, uid in uids.items():
        pods.cluster.wait_until_gone(pods.namespace, name)
        assert processes(uid) == []


def test_a_pod_ends_with_its_program_and_its_log_can_be_read(pods: Pods) -> None:
    pods.start("quick", ["sh", "-c", "echo one; echo two; exit 4"])
    ended = pods.ended("quick")
    assert (terminated(ended)["exitCode"], terminated(ended)["reason"]) == (4, "Error")
    assert pods.cluster.api.text(f"{pods.path}/quick/log") == "one\ntwo\n"
    assert pods.cluster.api.text(f"{pods.path}/quick/log", tailLines="1") == "two\n"


def test_a_pod_can_be_killed_for_its_memory_evicted_preempted_and_lose_its_node(pods: Pods) -> None:
    kubelet, names = pods.cluster.kubelet, ("greedy", "evicted", "preempted", "lost")
    for name in names:
        pods.start(name, ["sleep", "600"])
    for name in names:
        pods.running(name)
    kubelet.oom_kill(pods.namespace, "greedy")
    greedy = terminated(pods.ended("greedy"))
    assert (greedy["exitCode"], greedy["reason"]) == (137, "OOMKilled")
    kubelet.evict(pods.namespace, "evicted")
    assert pods.ended("evicted")["status"]["reason"] == "Evicted"
    kubelet.preempt(pods.namespace, "preempted")
    kubelet.lose_node(pods.namespace, "lost")
    for name in ("preempted", "lost"):
        pods.cluster.wait_until_gone(pods.namespace, name)


def test_a_pod_waits_for_an_image_that_is_not_there_and_for_a_node_that_is_big_enough(pods: Pods) -> None:
    pods.start("imageless", ["true"], image="absent/image:1")
    pods.start("huge", ["true"], resources={"requests": {"memory": "900Gi"}})
    pods.wait("imageless", "cannot pull", lambda pod: "ImagePullBackOff" in str(pod["status"]))
    pods.wait("huge", "cannot be scheduled", lambda pod: "Unschedulable" in str(pod["status"]))


def test_a_quota_and_missing_rights_refuse_a_pod(pods: Pods) -> None:
    pods.cluster.quota(pods.namespace, {"pods": "0"})
    with pytest.raises(ApiError, match="exceeded quota"):
        wait_until(lambda: pods.start("refused", ["true"]), 10, "the quota is known")
    with (
        pytest.raises(ApiError, match="forbidden"),
        pods.cluster.user(pods.namespace, "nobody", []) as unprivileged,
    ):
        unprivileged.get(pods.path)
