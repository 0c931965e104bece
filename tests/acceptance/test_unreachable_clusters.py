"""Clusters that cannot be reached: the job is tried again with growing delays, and `job show` says why."""

import os
import re
import socket
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.support import COMMAND_TIMEOUT_S, Desk
from tests.kubernetes_support import KubernetesSite
from tests.servers.standalone import Standalone
from tests.servers.yarn import Yarn
from tests.waiting import wait_until

RETRY = {"attempts": 1, "submissions": 2, "delay": "12s"}
"""Long enough to be looked at while it waits."""

NOBODY = "nobody listens there (connection refused)"
UNKNOWN_HOST = "nobody knows its host name"
VARIABLES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "KUBECONFIG")


@pytest.fixture
def port() -> Iterator[int]:
    """One where nobody listens and where nobody else will."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture
def desk(shared_desk: Desk) -> Desk:
    """One that knows no cluster, whatever this machine knows."""
    for name in VARIABLES:
        shared_desk.environment.pop(name, None)
    shared_desk.environment["HOME"] = str(shared_desk.directory)
    return shared_desk


def assert_tried_again(desk: Desk, jobs: Mapping[str, tuple[dict[str, Any], list[str]]]) -> None:
    """Each of these jobs (`spark`, words) waits for its second try, then fails, and says both times why."""
    worker = desk.start("worker", "--slots", "4")
    worker.wait_for_words("4 slots", COMMAND_TIMEOUT_S)
    for job_id, (spark, words) in jobs.items():
        definition = {"name": job_id, "python": "print()\n", "spark": spark, "retry": RETRY}
        file = desk.write(f"{job_id}.yaml", yaml.safe_dump(definition))
        assert desk.type("job", "submit", file.name, "--id", job_id).code == 0
        shown = wait_until(partial(_once_tried, desk, job_id), 60, f"{job_id} was tried")
        assert "ACCEPT, in queue accept" in shown
        assert "next try: 2" in shown
        _assert_reason(shown, words)
    for job_id, (_, words) in jobs.items():
        assert desk.type("job", "wait", job_id, "--timeout", "60s").code == 1
        shown = desk.type("job", "show", job_id).stdout
        assert "ERROR_FAIL, in queue finish" in shown
        _assert_reason(shown, words)


def _once_tried(desk: Desk, job_id: str) -> str | None:
    shown = desk.type("job", "show", job_id).stdout
    return shown if "error (" in shown else None


def _assert_reason(shown: str, words: list[str]) -> None:
    assert "error (submission):" in shown, shown
    missing = [word for word in words if word not in shown]
    assert not missing, (missing, shown)
    assert not re.search(r"0x[0-9a-f]{6}|Traceback|HTTPConnection", shown), f"objects are for nobody: {shown}"


def test_standalone(desk: Desk, port: int) -> None:
    here = f"127.0.0.1:{port}"
    closed = {"master": f"spark://{here}", "standalone": {"ui": here, "rest": here}}
    words = ["no master leads", f"http://{here}/json/ does not answer: {NOBODY}", "`standalone.ui`"]
    staged = {**closed["standalone"], "staging": str(desk.directory / "staging")}  # type: ignore[dict-item]
    host = "no.such.host.invalid"
    assert_tried_again(
        desk,
        {
            "client": (closed, words),
            "cluster": ({**closed, "deploy_mode": "cluster", "standalone": staged}, words),
            "unknown": (
                {"master": f"spark://{host}:7077"},
                [f"http://{host}:8080/json/ does not answer: {UNKNOWN_HOST}"],
            ),
        },
    )


@pytest.mark.spark
def test_standalone_where_only_a_part_of_it_is_at_its_address(
    standalone: Standalone, desk: Desk, port: int
) -> None:
    here = f"127.0.0.1:{port}"
    rest = {"ui": standalone.ui, "rest": here, "staging": standalone.staging}
    assert_tried_again(
        desk,
        {
            "master": (
                {"master": f"spark://{here}", "standalone": {"ui": standalone.ui}},
                [f"spark://{here} does not answer: {NOBODY}", "correct `master`"],
            ),
            "rest": (
                {"master": standalone.url, "deploy_mode": "cluster", "standalone": rest},
                [f"http://{here}/v1/submissions/create does not answer: {NOBODY}", "`standalone.rest`"],
            ),
        },
    )


def both_modes(words: list[str]) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """A job of each mode on YARN."""
    modes = ("client", "cluster")
    return {mode: ({"master": "yarn", "deploy_mode": mode}, words) for mode in modes}


def test_yarn_without_a_configuration(desk: Desk) -> None:
    words = ["YARN's configuration is not known", "set HADOOP_CONF_DIR to the folder with yarn-site.xml"]
    assert_tried_again(desk, both_modes(words))


def test_yarn_whose_configuration_is_not_there(desk: Desk) -> None:
    missing = str(desk.directory / "hadoop")
    desk.environment["HADOOP_CONF_DIR"] = missing
    assert_tried_again(desk, both_modes([f"HADOOP_CONF_DIR is {missing}, which is no folder: correct it"]))


@pytest.mark.parametrize("host", ["127.0.0.1", "no.such.host.invalid"])
def test_yarn_whose_resource_manager_does_not_answer(desk: Desk, port: int, host: str) -> None:
    desk.environment["HADOOP_CONF_DIR"] = str(desk.directory)
    name = "yarn.resourcemanager.webapp.address"
    entry = f"<property><name>{name}</name><value>{host}:{port}</value></property>"
    desk.write("yarn-site.xml", f"<configuration>{entry}</configuration>")
    reason = NOBODY if host == "127.0.0.1" else UNKNOWN_HOST
    address = f"http://{host}:{port}/ws/v1/cluster/apps"
    assert_tried_again(
        desk,
        both_modes(["no active ResourceManager", f"{address} does not answer: {reason}", "yarn-site.xml"]),
    )


@pytest.mark.spark
def test_yarn_that_takes_applications_elsewhere(yarn: Yarn, desk: Desk, port: int) -> None:
    desk.environment["HADOOP_CONF_DIR"] = str(desk.directory)
    own, wrong = (yarn.conf_dir / "yarn-site.xml").read_text("utf-8"), f"127.0.0.1:{port}"
    name = "yarn.resourcemanager.address"
    entry = f"<property><name>{name}</name><value>{wrong}</value></property>"
    file = desk.write("yarn-site.xml", own.replace("</configuration>", f"{entry}</configuration>"))
    words = [f"no ResourceManager takes applications: {wrong} does not answer: {NOBODY}", f"in {file}"]
    assert_tried_again(desk, both_modes(words))


def on_kubernetes(url: str, namespace: str = "default") -> dict[str, Any]:
    return {
        "master": f"k8s://{url}",
        "kubernetes": {"image": "spark", "namespace": namespace},
        "deploy_mode": "cluster",
    }


def test_kubernetes_without_a_kubeconfig(desk: Desk, port: int) -> None:
    url = f"https://127.0.0.1:{port}"
    words = [
        f"no access to {url}: the worker has no kubeconfig: set KUBECONFIG there, or make ~/.kube/config"
    ]
    assert_tried_again(desk, {"pod": (on_kubernetes(url), words)})


def test_kubernetes_whose_kubeconfig_is_not_there(desk: Desk, port: int) -> None:
    url, missing = f"https://127.0.0.1:{port}", str(desk.directory / "kubeconfig")
    desk.environment["KUBECONFIG"] = missing
    words = [f"no access to {url}: KUBECONFIG is {missing}, where no file is: correct it on the worker"]
    assert_tried_again(desk, {"pod": (on_kubernetes(url), words)})


def kubeconfig(desk: Desk, **cluster: str) -> str:
    """Write the configuration of somebody whom no cluster knows; its path."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:1", **cluster}}],
        "users": [{"name": "me", "user": {"token": "a-token"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
    }
    return str(desk.write("kubeconfig", yaml.safe_dump(document)))


def test_kubernetes_that_does_not_answer(desk: Desk, port: int) -> None:
    desk.environment["KUBECONFIG"] = kubeconfig(desk)
    here, elsewhere = f"https://127.0.0.1:{port}", "https://no.such.host.invalid:6443"
    begin, check = "the Kubernetes API at", "check the address in `spark.master`"
    assert_tried_again(
        desk,
        {
            "nobody": (on_kubernetes(here), [f"{begin} {here} does not answer: {NOBODY}", check]),
            "unknown": (
                on_kubernetes(elsewhere),
                [f"{begin} {elsewhere} does not answer: {UNKNOWN_HOST}", check],
            ),
        },
    )


def test_a_job_that_waits_for_its_cluster_can_be_stopped_though_that_is_away(desk: Desk, port: int) -> None:
    desk.environment["KUBECONFIG"] = kubeconfig(desk)
    worker = desk.start("worker", "--slots", "1")
    worker.wait_for_words("1 slots", COMMAND_TIMEOUT_S)
    spark = on_kubernetes(f"https://127.0.0.1:{port}")
    definition = {"name": "pod", "python": "print()\n", "spark": spark, "retry": {"delay": "1h"}}
    file = desk.write("pod.yaml", yaml.safe_dump(definition))
    assert desk.type("job", "submit", file.name, "--id", "pod").code == 0
    wait_until(partial(_once_tried, desk, "pod"), 60, "it was tried")
    assert desk.type("job", "kill", "pod").code == 0
    desk.type("job", "wait", "pod", "--timeout", "60s")
    assert "CANCEL, in queue finish" in desk.type("job", "show", "pod").stdout


@pytest.mark.parametrize("lacks", ["a name", "rights", "trust"])
def test_kubernetes_that_refuses_the_worker(kubernetes_site: KubernetesSite, desk: Desk, lacks: str) -> None:
    cluster, namespace = kubernetes_site.cluster, kubernetes_site.namespace
    address = cluster.api.address
    begin = f"the Kubernetes API at {address.url}"
    match lacks:
        case "a name":
            file = kubeconfig(desk, **{"certificate-authority": str(address.ca)})
            words = [f"{begin} refused it (401)", f"renew the token or the certificate of KUBECONFIG={file}"]
        case "rights":
            token = cluster.account(namespace, "nobody", [])
            file = str(cluster.kubeconfig(desk.directory / "kubeconfig", namespace, token))
            words = [f"{begin} refused it (403)", 'cannot list resource "pods"', "docs/backends.md"]
        case _:
            file = kubeconfig(desk)
            words = [f"{begin} does not answer: its certificate is not trusted", f"KUBECONFIG={file}"]
    desk.environment |= {"KUBECONFIG": file, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    assert Path(file).is_file()
    assert_tried_again(desk, {"pod": (on_kubernetes(address.url, namespace), words)})
