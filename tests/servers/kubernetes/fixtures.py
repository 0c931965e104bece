"""A real Kubernetes for tests: from the environment, else started here."""

import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

import pytest
import yaml

from tests.servers.kubernetes.api import Api, ApiAddress, ApiError, Document
from tests.servers.kubernetes.collector import CORE, KINDS, Collector
from tests.servers.kubernetes.control_plane import ControlPlane, control_plane
from tests.servers.kubernetes.kubelet import Kubelet
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

GONE_S = 60
RIGHTS_S = 30
_TRUSTED = "kube-root-ca.crt"  # in each namespace of any cluster


@dataclass(frozen=True)
class Kubernetes:
    """A cluster; `own` is set if the tests started it, and has its servers."""

    api: Api
    own: "OwnCluster | None" = None

    @property
    def kubelet(self) -> Kubelet:
        """The only node of a cluster started by the tests; skips the test elsewhere."""
        return self._own().kubelet

    @property
    def plane(self) -> ControlPlane:
        """The servers of a cluster started by the tests; skips the test elsewhere."""
        return self._own().plane

    def _own(self) -> "OwnCluster":
        if self.own is None:
            pytest.skip("needs a cluster that was started by the tests")
        return self.own

    def account(self, namespace: str, name: str, rules: Sequence[Document]) -> str:
        """Create a service account with a Role of these rules, already in effect; returns its token."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.api.create(path, {"metadata": {"name": name}})
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        self.api.create(f"{rbac}/roles", {"metadata": {"name": name}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
        self.api.create(f"{rbac}/rolebindings", binding)
        user = f"system:serviceaccount:{namespace}:{name}"
        # A binding takes effect shortly after its creation.
        for rule in rules:
            wait_until(partial(self._may, user, namespace, rule), RIGHTS_S, f"{user} has its rights")
        token: str = self.api.create(f"{path}/{name}/token", {})["status"]["token"]
        return token

    def _may(self, user: str, namespace: str, rule: Document) -> bool:
        """Whether the API grants a user the first right of a rule."""
        resource, _, sub = rule["resources"][0].partition("/")
        asked = {"group": rule["apiGroups"][0], "resource": resource, "verb": rule["verbs"][0]}
        attributes = {**asked, "subresource": sub, "namespace": namespace}
        review = {"spec": {"user": user, "resourceAttributes": attributes}}
        answer = self.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    @contextmanager
    def user(self, namespace: str, name: str, rules: Sequence[Document]) -> Iterator[Api]:
        """Yield the API as a new service account."""
        address = self.api.address
        api = Api(ApiAddress(address.url, address.ca, self.account(namespace, name, rules)))
        try:
            yield api
        finally:
            api.close()

    def quota(self, namespace: str, hard: Mapping[str, str]) -> None:
        """Set a quota of a namespace; usage counts from now on."""
        path = f"/api/v1/namespaces/{namespace}/resourcequotas"
        self.api.create(path, {"metadata": {"name": "quota"}, "spec": {"hard": hard}})
        if self.own:  # written by the controller of quotas elsewhere
            status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
            self.api.patch(f"{path}/quota/status", {"status": status})

    def kubeconfig(self, path: Path, namespace: str, token: str) -> Path:
        """Write the configuration file of a user; returns its path."""
        address = ApiAddress(self.api.address.url, self.api.address.ca, token)
        path.write_text(yaml.safe_dump(address.kubeconfig(namespace)), "utf-8")
        path.chmod(0o600)
        return path

    def pods(self, namespace: str, labels: Mapping[str, str] | None = None) -> list[Document]:
        selector = ",".join(f"{name}={value}" for name, value in (labels or {}).items())
        return self.api.items(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)

    def pod(self, namespace: str, name: str) -> Document | None:
        try:
            return self.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            return None

    def wait_until_gone(self, namespace: str, pod: str) -> None:
        wait_until(lambda: self.pod(namespace, pod) is None, GONE_S, f"pod {pod} is gone")

    def names(self, namespace: str, kind: str) -> set[str]:
        items = self.api.items(f"{KINDS[kind]}/namespaces/{namespace}/{kind}")
        return {item["metadata"]["name"] for item in items}

    def wait_until_nothing_is_left(self, namespace: str, *but: str) -> None:
        """Wait until no pod and no object of one is left; `but` are names that may stay."""
        stay = {_TRUSTED, *but}

        def left() -> set[str]:
            return {name for kind in KINDS for name in self.names(namespace, kind)} - stay

        wait_until(lambda: not left(), GONE_S, f"nothing is left in {namespace}")

    @contextmanager
    def namespace(self) -> Iterator[str]:
        """Yield a new namespace; afterwards no object and no process of it is left."""
        name = f"test-{uuid.uuid4()}"
        path = f"/api/v1/namespaces/{name}"
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        if self.own:  # created by controllers in each namespace elsewhere
            self.api.create(f"{path}/serviceaccounts", {"metadata": {"name": "default"}})
            trusted = {"ca.crt": self.api.address.ca.read_text("utf-8")}
            self.api.create(f"{path}/configmaps", {"metadata": {"name": _TRUSTED}, "data": trusted})
        try:
            yield name
        finally:
            for pod in self.pods(name):
                self.api.delete(f"{path}/pods/{pod['metadata']['name']}", grace_seconds=1)
            wait_until(lambda: not self.pods(name), GONE_S, f"the end of all pods of {name}")
            self.api.delete(path)
            if self.own:
                self._empty(name)

    def _empty(self, namespace: str) -> None:
        """As the namespace controller: remove the contents, then finalize the namespace."""
        kinds = {**KINDS, "serviceaccounts": CORE, "resourcequotas": CORE}
        core = [f"{api}/namespaces/{namespace}/{kind}" for kind, api in kinds.items()]
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
        for path in (*core, f"{rbac}/roles", f"{rbac}/rolebindings"):
            for found in self.api.items(path):
                self.api.delete(f"{path}/{found['metadata']['name']}")
        path = f"/api/v1/namespaces/{namespace}"
        self.api.replace(f"{path}/finalize", {"metadata": {"name": namespace}, "spec": {"finalizers": []}})


@dataclass(frozen=True)
class OwnCluster:
    """The servers started here."""

    plane: ControlPlane
    kubelet: Kubelet


@pytest.fixture(scope="session")
def kubernetes() -> Iterator[Kubernetes]:
    """A real Kubernetes; one per test session and xdist worker."""
    with ExitStack() as stack:
        if config := os.environ.get("KUBERNETES_TEST_KUBECONFIG"):
            api = Api(_address(Path(config)))
            stack.callback(api.close)
            yield Kubernetes(api)
            return
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubelet-")))
        plane = stack.enter_context(control_plane())
        api = Api(plane.address)
        stack.callback(api.close)
        kubelet, collector = Kubelet(api, folder), Collector(api)
        stack.callback(kubelet.stop)
        kubelet.start()
        stack.callback(collector.stop)
        collector.start()
        yield Kubernetes(api, OwnCluster(plane, kubelet))


@pytest.fixture
def kubernetes_namespace(kubernetes: Kubernetes) -> Iterator[str]:
    """Name of a namespace for one test; nothing of it is left afterwards."""
    with kubernetes.namespace() as name:
        yield name


def _address(config: Path) -> ApiAddress:
    """The current context of a configuration file with certificate files and a token."""
    read = yaml.safe_load(config.read_text("utf-8"))
    kinds = ("cluster", "user", "context")
    named = {kind: {entry["name"]: entry[kind] for entry in read[f"{kind}s"]} for kind in kinds}
    context = named["context"][read["current-context"]]
    cluster, user = named["cluster"][context["cluster"]], named["user"][context["user"]]
    if "token" not in user or "certificate-authority" not in cluster:
        unavailable(f"{config} needs a user with a token and a cluster with a file `certificate-authority`")
    return ApiAddress(cluster["server"], Path(cluster["certificate-authority"]), user["token"])
