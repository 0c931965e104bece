"""deploy/kubernetes on a real API server: it accepts each object, and its admission and RBAC enforce them."""

import re
import tomllib
import uuid
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.config.settings import Settings
from tests.servers.kubernetes.api import ApiError, Document
from tests.servers.kubernetes.fixtures import RIGHTS_S, Kubernetes
from tests.servers.kubernetes.rules import DRIVER_RULES, WORKER_RULES
from tests.waiting import wait_until

FOLDER = Path(__file__).parents[2] / "deploy/kubernetes"
NAMESPACES = ("orchestrator", "spark-jobs")
GROUPS = {
    "Namespace": "/api/v1/namespaces",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Pod": "/api/v1/namespaces/{}/pods",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}


def manifests() -> list[Document]:
    names = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))["resources"]
    assert {*names, "kustomization.yaml"} == {path.name for path in FOLDER.iterdir()}
    return [found for name in names for found in yaml.safe_load_all((FOLDER / name).read_text("utf-8"))]


def of_kind(kind: str) -> list[Document]:
    return [found for found in manifests() if found["kind"] == kind]


class Applied:
    """The manifests in namespaces of one test."""

    def __init__(self, cluster: Kubernetes) -> None:
        self.cluster = cluster
        self.names = {name: f"{name}-{uuid.uuid4()}" for name in NAMESPACES}

    def apply(self, manifest: Document) -> Document:
        """Create an object; an unknown or duplicate field is an error."""
        text = yaml.safe_dump(manifest)
        for name, own in self.names.items():
            text = re.sub(rf"\bname(space)?: {name}$", rf"name\1: {own}", text, flags=re.MULTILINE)
        own_manifest = yaml.safe_load(text)
        path = GROUPS[own_manifest["kind"]].format(own_manifest["metadata"].get("namespace"))
        return self.cluster.api.create(path, own_manifest, fieldValidation="Strict")


@pytest.fixture(scope="module")
def applied(kubernetes: Kubernetes) -> Iterator[Applied]:
    made = Applied(kubernetes)
    for manifest in manifests():
        made.apply(manifest)
    if kubernetes.own:  # created by a controller elsewhere
        for name in made.names.values():
            kubernetes.api.create(GROUPS["ServiceAccount"].format(name), {"metadata": {"name": "default"}})
    yield made
    for name in made.names.values():
        kubernetes.api.delete(f"/api/v1/namespaces/{name}")


def test_the_server_knows_each_field_of_each_object(applied: Applied) -> None:
    space = applied.names["orchestrator"]
    sets = applied.cluster.api.items(f"/apis/apps/v1/namespaces/{space}/statefulsets")
    assert {found["metadata"]["name"]: found["spec"]["replicas"] for found in sets} == {
        "zookeeper": 3,
        "orchestrator-worker": 2,
    }


@pytest.mark.parametrize("name", ["zookeeper", "orchestrator-worker"])
def test_pods_meet_the_restricted_standard(applied: Applied, name: str) -> None:
    template = next(found for found in of_kind("StatefulSet") if found["metadata"]["name"] == name)
    pod = pod_of(template)
    applied.apply(pod)
    pod["metadata"]["name"] = f"{name}-as-root"
    pod["spec"]["securityContext"]["runAsNonRoot"] = False
    pod["spec"]["securityContext"]["runAsUser"] = 0
    with pytest.raises(ApiError, match="restricted") as refused:
        applied.apply(pod)
    assert refused.value.status == HTTPStatus.FORBIDDEN


def pod_of(stateful_set: Document) -> Document:
    """A pod as the controller would make it, but for the volumes that it claims."""
    spec: dict[str, Any] = stateful_set["spec"]
    pod: Document = {"apiVersion": "v1", "kind": "Pod", **spec["template"]}
    pod["metadata"] = {
        **pod["metadata"],
        "name": f"{stateful_set['metadata']['name']}-0",
        "namespace": stateful_set["metadata"]["namespace"],
    }
    for claim in spec["volumeClaimTemplates"]:
        pod["spec"]["volumes"].append({"name": claim["metadata"]["name"], "emptyDir": {}})
    # No node takes it: the test asks only whether the API admits it.
    pod["spec"]["nodeName"] = "none"
    return pod


def test_the_roles_are_those_that_real_jobs_run_with() -> None:
    """The tests of the Kubernetes backend run each job with these rules, with RBAC on."""
    roles = {found["metadata"]["name"]: found for found in of_kind("Role")}
    assert roles["orchestrator-worker"]["rules"] == WORKER_RULES
    assert roles["spark"]["rules"] == DRIVER_RULES
    assert {role["metadata"]["namespace"] for role in roles.values()} == {"spark-jobs"}


def test_the_worker_has_rights_among_the_drivers_alone(applied: Applied) -> None:
    user = f"system:serviceaccount:{applied.names['orchestrator']}:orchestrator-worker"

    def may(verb: str, resource: str, namespace: str) -> bool:
        attributes = {"verb": verb, "resource": resource, "namespace": namespace}
        review = {"spec": {"user": user, "resourceAttributes": attributes}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(applied.cluster.api.create(path, review)["status"]["allowed"])

    jobs, own = applied.names["spark-jobs"], applied.names["orchestrator"]
    wait_until(lambda: may("create", "pods", jobs), RIGHTS_S, "the binding takes effect")
    for verb, resource, namespace in (
        ("get", "secrets", jobs),
        ("list", "secrets", jobs),
        ("create", "pods", own),
        ("get", "secrets", own),
        ("list", "nodes", ""),
        ("create", "roles", jobs),
    ):
        assert not may(verb, resource, namespace), (verb, resource, namespace)


def test_the_configuration_of_the_worker_is_valid(tmp_path: Path) -> None:
    config = next(found for found in of_kind("ConfigMap"))["data"]
    read = tomllib.loads(config["config.toml"])
    for table, names in (
        (read["zookeeper_tls"], ["ca_file"]),
        (read["zookeeper_login"], ["password_file"]),
        (read["metrics"], ["token_file", "certificate_file"]),
    ):
        for name in names:
            file = tmp_path / Path(table[name]).name
            file.touch()
            table[name] = str(file)
    settings = Settings(**read)
    assert settings.zookeeper_hosts.count(".orchestrator.svc:2181") == len(read["zookeeper_hosts"].split(","))
    assert yaml.safe_load(config["driver.yaml"])["kind"] == "Pod"
