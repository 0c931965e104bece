"""Clusters that cannot be reached or refuse a worker: the error of each job, at once and in the end.

Nothing is submitted, so nothing is started: the worker is in this process, with all its real backends.
"""

import re
import socket
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.compose import build_runners, build_worker
from orchestrator.model.job import JobError
from orchestrator.model.limits import Limits
from orchestrator.model.states import Queue, Status
from tests.jobs_support import Deployment
from tests.kubernetes_support import KubernetesSite
from tests.servers.standalone import Standalone
from tests.servers.yarn import Yarn
from tests.waiting import wait_until

MOST = timedelta(minutes=10)
"""The longest delay before the next try of a submission."""

LATER = {"attempts": 1, "submissions": 2, "delay": "1h"}
AT_ONCE = {"attempts": 1, "submissions": 2, "delay": "50ms"}

NO_SERVER = "no server listens there (connection refused)"
UNKNOWN = "no.such.host.invalid"
UNKNOWN_HOST = "its host name is unknown"
VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "KUBECONFIG")

Case = tuple[dict[str, Any], list[str]]
"""The part `spark` of a definition, and the parts of the error of its job."""


@pytest.fixture
def port() -> Iterator[int]:
    """A port that no server uses during the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture(autouse=True)
def no_cluster_is_known(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Even if this machine has configurations of clusters."""
    assert deployment
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def tried_again(deployment: Deployment) -> Iterator[Callable[..., None]]:
    """Each of these jobs waits for its second try, or fails with it, and shows the same reason."""
    # No driver starts, so the load of this machine does not matter.
    limits = Limits.model_construct(
        **{**Limits().model_dump(), "memory_pressure_limit": 0.0, "memory_guard": False}
    )
    settings = deployment.settings.model_copy(update={"slots": 4, "class_archives": False})
    worker = build_worker(
        deployment.session(), settings, runners=build_runners(settings, warm=False), limits=lambda: limits
    )

    def assert_tried_again(cases: dict[str, Case]) -> None:
        worker.start()
        jobs = {
            (deployment.submit("print()", spark=spark, retry=retry), is_last): words
            for spark, words in cases.values()
            for is_last, retry in ((False, LATER), (True, AT_ONCE))
        }
        for (job_id, is_last), words in jobs.items():
            _assert_ended(deployment, job_id, words) if is_last else _assert_waits(deployment, job_id, words)

    yield assert_tried_again
    worker.drain()


def _assert_waits(deployment: Deployment, job_id: str, words: list[str]) -> None:
    wait_until(lambda: deployment.client.get(job_id).error, 60, "it was tried")
    detail = deployment.client.detail(job_id)
    assert (detail.job.status, detail.job.queue) == (Status.ACCEPT, Queue.ACCEPT)
    assert detail.due, "it is known when it is tried again"
    waits = datetime.fromisoformat(detail.due) - datetime.fromisoformat(detail.job.created)
    assert waits > MOST * 0.8, "its delay, bounded and a fifth less or more"
    _assert_reason(detail.job.error, words)


def _assert_ended(deployment: Deployment, job_id: str, words: list[str]) -> None:
    job = deployment.wait(job_id).job
    assert (job.status, job.queue) == (Status.ERROR_FAIL, Queue.FINISH)
    _assert_reason(job.error, words)


def _assert_reason(error: JobError | None, words: list[str]) -> None:
    assert error is not None
    assert error.error_class == "submission"
    missing = [word for word in words if word not in error.message]
    assert not missing, (missing, error.message)
    objects = r"0x[0-9a-f]{6}|Traceback|HTTPConnection"
    assert not re.search(objects, error.message), f"the message has no objects: {error.message}"


Tried = Callable[[dict[str, Case]], None]


# ---------------------------------------------------------------------- standalone
def test_standalone(tried_again: Tried, tmp_path: Path, port: int) -> None:
    here = f"127.0.0.1:{port}"
    closed = {"master": f"spark://{here}", "standalone": {"ui": here, "rest": here}}
    words = ["no master leads", f"http://{here}/json/ does not answer: {NO_SERVER}", "`standalone.ui`"]
    staged = {"ui": here, "rest": here, "staging": str(tmp_path / "staging")}
    tried_again(
        {
            "client": (closed, words),
            "cluster": ({**closed, "deploy_mode": "cluster", "standalone": staged}, words),
            "unknown": (
                {"master": f"spark://{UNKNOWN}:7077"},
                [f"http://{UNKNOWN}:8080/json/ does not answer: {UNKNOWN_HOST}"],
            ),
        },
    )


def test_standalone_where_only_a_part_of_it_is_at_its_address(
    standalone: Standalone, tried_again: Tried, port: int
) -> None:
    here = f"127.0.0.1:{port}"
    rest = {"ui": standalone.ui, "rest": here, "staging": standalone.staging}
    tried_again(
        {
            "master": (
                {"master": f"spark://{here}", "standalone": {"ui": standalone.ui}},
                [f"spark://{here} does not answer: {NO_SERVER}", "correct `master`"],
            ),
            "rest": (
                {"master": standalone.url, "deploy_mode": "cluster", "standalone": rest},
                [f"http://{here}/v1/submissions/create does not answer: {NO_SERVER}", "`standalone.rest`"],
            ),
        },
    )


# ---------------------------------------------------------------------- YARN
def both_modes(words: list[str]) -> dict[str, Case]:
    """A job of each mode."""
    modes = ("client", "cluster")
    return {mode: ({"master": "yarn", "deploy_mode": mode}, words) for mode in modes}


def test_yarn_without_a_configuration(tried_again: Tried) -> None:
    words = ["YARN is not configured", "set HADOOP_CONF_DIR to the folder with yarn-site.xml"]
    tried_again(both_modes(words))


def test_yarn_whose_configuration_is_not_there(
    tried_again: Tried, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "hadoop")
    monkeypatch.setenv("HADOOP_CONF_DIR", missing)
    tried_again(both_modes([f"HADOOP_CONF_DIR is {missing}, which is not a folder: correct it"]))


@pytest.mark.parametrize("host", ["127.0.0.1", UNKNOWN])
def test_yarn_whose_resource_manager_does_not_answer(
    tried_again: Tried, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int, host: str
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    name = "yarn.resourcemanager.webapp.address"
    entry = f"<property><name>{name}</name><value>{host}:{port}</value></property>"
    (tmp_path / "yarn-site.xml").write_text(f"<configuration>{entry}</configuration>", "utf-8")
    reason = UNKNOWN_HOST if host == UNKNOWN else NO_SERVER
    address = f"http://{host}:{port}/ws/v1/cluster/apps"
    tried_again(
        both_modes(["no active ResourceManager", f"{address} does not answer: {reason}", "yarn-site.xml"])
    )


def test_yarn_that_takes_applications_elsewhere(
    yarn: Yarn, tried_again: Tried, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    own, wrong = (yarn.conf_dir / "yarn-site.xml").read_text("utf-8"), f"127.0.0.1:{port}"
    name = "yarn.resourcemanager.address"
    entry = f"<property><name>{name}</name><value>{wrong}</value></property>"
    file = tmp_path / "yarn-site.xml"
    file.write_text(own.replace("</configuration>", f"{entry}</configuration>"), "utf-8")
    tried_again(
        both_modes(
            [f"no ResourceManager accepts applications: {wrong} does not answer: {NO_SERVER}", f"in {file}"]
        )
    )


# ---------------------------------------------------------------------- Kubernetes
def on_kubernetes(url: str, namespace: str = "default") -> dict[str, Any]:
    return {
        "master": f"k8s://{url}",
        "kubernetes": {"image": "spark", "namespace": namespace},
        "deploy_mode": "cluster",
    }


def kubeconfig(folder: Path, server: str, **cluster: str) -> str:
    """Write a configuration for this server with a user that no cluster has; return its path."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "me", "user": {"token": "a-token"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
    }
    file = folder / "of-an-unknown-user"
    file.write_text(yaml.safe_dump(document), "utf-8")
    return str(file)


def test_kubernetes_without_a_kubeconfig(tried_again: Tried, port: int) -> None:
    url = f"https://127.0.0.1:{port}"
    remedy = "set KUBECONFIG on the worker, or create ~/.kube/config"
    words = [f"no access to {url}: the worker has no kubeconfig: {remedy}"]
    tried_again({"pod": (on_kubernetes(url), words)})


def test_kubernetes_whose_kubeconfig_is_not_there(
    tried_again: Tried, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    url, missing = f"https://127.0.0.1:{port}", str(tmp_path / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", missing)
    words = [f"no access to {url}: KUBECONFIG names {missing}, which is not a file: correct it on the worker"]
    tried_again({"pod": (on_kubernetes(url), words)})


@pytest.mark.parametrize("host", ["127.0.0.1", UNKNOWN])
def test_kubernetes_that_does_not_answer(
    tried_again: Tried, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int, host: str
) -> None:
    url, reason = f"https://{host}:{port}", UNKNOWN_HOST if host == UNKNOWN else NO_SERVER
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, url))
    begin, check = (
        f"the Kubernetes API at {url} does not answer: {reason}",
        "check the address in `spark.master`",
    )
    tried_again({"pod": (on_kubernetes(url), [begin, check])})


@pytest.mark.parametrize("lacks", ["a name", "rights", "trust"])
def test_kubernetes_that_refuses_the_worker(
    kubernetes_site: KubernetesSite,
    tried_again: Tried,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lacks: str,
) -> None:
    cluster, namespace = kubernetes_site.cluster, kubernetes_site.namespace
    address = cluster.api.address
    begin = f"the Kubernetes API at {address.url}"
    match lacks:
        case "a name":
            file = kubeconfig(tmp_path, address.url, **{"certificate-authority": str(address.ca)})
            words = [
                f"{begin} refused the request (401)",
                f"renew the token or the certificate of KUBECONFIG={file}",
            ]
        case "rights":
            token = cluster.account(namespace, "nobody", [])
            file = str(cluster.kubeconfig(tmp_path / "kubeconfig", namespace, token))
            words = [f"{begin} refused the request (403)", 'cannot list resource "pods"', "docs/backends.md"]
        case _:
            file = kubeconfig(tmp_path, address.url)
            words = [f"{begin} does not answer: its certificate is not trusted", f"KUBECONFIG={file}"]
    monkeypatch.setenv("KUBECONFIG", file)
    tried_again({"pod": (on_kubernetes(address.url, namespace), words)})
