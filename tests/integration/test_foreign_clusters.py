"""The worker's credentials for Kubernetes are sent only to the server that the operator's files name."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.compose import DRIVER_MAIN
from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.runners.base import SparkTarget, SubmissionPlace, SubmitRequest
from spark_runner.runners.kubernetes import access
from spark_runner.runners.kubernetes.access import KubernetesCredentials
from spark_runner.runners.kubernetes.api import KubernetesApi, KubernetesError
from spark_runner.runners.kubernetes.backend import KubernetesBackend
from spark_runner.runners.spark_submits import SparkSubmits
from tests.hostile_server import Stranger, stranger
from tests.receiver import receiver

pytest.importorskip("kubernetes")

TOKEN = "the-token-of-the-worker"  # noqa: S105 - made up
OURS = "https://127.0.0.1:1"


@pytest.fixture
def evil() -> Iterator[Stranger]:
    with stranger() as made:
        yield made


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kubeconfig of an operator: two clusters, a token for each."""
    monkeypatch.setattr(access, "_ACCOUNT", tmp_path / "token")
    return write(tmp_path, monkeypatch, {"one": OURS, "other": "https://127.0.0.1:2"})


def write(folder: Path, monkeypatch: pytest.MonkeyPatch, servers: dict[str, str], **cluster: Any) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(servers)),
        "clusters": [
            {"name": f"of-{name}", "cluster": {"server": server, **cluster}}
            for name, server in servers.items()
        ],
        "users": [{"name": name, "user": {"token": f"{TOKEN}-{name}"}} for name in servers],
        "contexts": [{"name": name, "context": {"cluster": f"of-{name}", "user": name}} for name in servers],
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(document), "utf-8")
    monkeypatch.setenv("KUBECONFIG", str(file))
    return file


def backend(folder: Path) -> KubernetesBackend:
    return KubernetesBackend(SparkSubmits(folder / "state"), driver_main=DRIVER_MAIN)


def refused(folder: Path, url: str, **options: str) -> str:
    with pytest.raises(RefusedSubmission) as raised:
        backend(folder).runner_for(SparkTarget(f"k8s://{url}", "cluster", options))
    return str(raised.value)


def test_a_definition_cannot_name_another_server(home: Path, tmp_path: Path, evil: Stranger) -> None:
    assert "only over https" in refused(tmp_path, evil.url)
    words = refused(tmp_path, "https://127.0.0.1:3")
    assert f"credentials are for {OURS}" in words
    assert f"the server in KUBECONFIG={home}" in words
    assert evil.seen == []


def test_an_attempt_in_zookeeper_cannot_name_another_server(
    home: Path, tmp_path: Path, evil: Stranger
) -> None:
    place = SubmissionPlace("kubernetes", cluster={"master": f"k8s://{evil.url}", "namespace": "default"})
    runner = backend(tmp_path).runner_at(place)
    assert runner is not None
    with pytest.raises(KubernetesError, match="sends its credentials to no other server"):
        runner.find("run-1")
    assert evil.seen == [], home


def test_a_server_over_plain_http_is_refused_also_where_the_kubeconfig_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evil: Stranger
) -> None:
    write(tmp_path, monkeypatch, {"plain": evil.url})
    assert "only over https" in refused(tmp_path, evil.url)
    with pytest.raises(KubernetesError, match="only over https"):
        KubernetesApi(evil.url, KubernetesCredentials()).pods("default", "a=b")
    assert evil.seen == []


def test_the_credentials_of_one_context_are_not_sent_to_the_server_of_another(
    home: Path, tmp_path: Path
) -> None:
    made = backend(tmp_path)
    assert made.runner_for(SparkTarget(f"k8s://{OURS}/", "cluster")), home
    assert made.runner_for(SparkTarget("k8s://https://127.0.0.1:2", "cluster", {"context": "other"}))
    assert f"credentials are for {OURS}" in refused(tmp_path, "https://127.0.0.1:2")
    assert "credentials are for https://127.0.0.1:2" in refused(tmp_path, OURS, context="other")


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:1@127.0.0.1:3",
        "https://user:x@127.0.0.1:1",
        "https://127.0.0.1:1?x",
        "https://127.0.0.1:1#x",
        "https://127.0.0.1:3\\@127.0.0.1:1",
        "https://127.0.0.1:99999999",
        "http://127.0.0.1:1",
        "HTTPS://127.0.0.1:1",
    ],
)
def test_an_address_that_clients_could_read_in_two_ways_is_refused(
    home: Path, tmp_path: Path, url: str
) -> None:
    assert "is refused" in refused(tmp_path, url), home


def test_files_that_changed_since_are_read_again_before_a_driver_is_submitted(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evil: Stranger
) -> None:
    runner = backend(tmp_path).runner_for(SparkTarget(f"k8s://{OURS}", "cluster"))
    write(tmp_path, monkeypatch, {"new": "https://127.0.0.1:3"})
    with pytest.raises(RefusedSubmission, match=r"credentials are for https://127\.0\.0\.1:3"):
        runner.submit(SubmitRequest("run-1", "one", "name", {}))
    assert home.exists()
    assert evil.seen == []


def test_the_service_account_of_a_pod_is_for_the_cluster_of_that_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evil: Stranger
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    monkeypatch.setattr(access, "_ACCOUNT", token)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    made = backend(tmp_path)
    for url in ("https://10.0.0.1:443", "https://10.0.0.1", "https://kubernetes.default.svc"):
        assert made.runner_for(SparkTarget(f"k8s://{url}", "cluster"))
    assert "credentials are for https://10.0.0.1:443" in refused(tmp_path, "https://127.0.0.1:3")
    assert "only over https" in refused(tmp_path, evil.url)
    assert evil.seen == []


def test_a_redirect_of_the_server_takes_no_credentials_elsewhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    evil: Stranger,
    certificates: Any,
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.server)

    def away(request: Any) -> None:
        request.send_response(307)
        request.send_header("Location", f"{evil.url}/elsewhere")
        request.send_header("Content-Length", "0")
        request.end_headers()

    with receiver(away, tls=tls) as server:
        url = server.url.removesuffix("/ended")
        write(tmp_path, monkeypatch, {"one": url}, **{"certificate-authority": str(certificates.ca)})
        with pytest.raises(KubernetesError):
            KubernetesApi(url, KubernetesCredentials()).create_secret(
                "default", {"kind": "Secret", "data": {}}
            )
    (asked,) = server.requests
    assert {name.lower(): value for name, value in asked.headers.items()}[
        "authorization"
    ] == f"Bearer {TOKEN}-one"
    assert evil.seen == []
