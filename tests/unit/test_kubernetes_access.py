"""The source of a worker's rights in a cluster, and the error where they are missing."""

from pathlib import Path

import pytest

from spark_runner.runners.kubernetes import access
from spark_runner.runners.kubernetes.access import KubernetesCredentials


@pytest.fixture(autouse=True)
def empty_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(access, "_ACCOUNT", tmp_path / "token")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def test_the_error_of_a_worker_without_a_file_names_the_path_for_it(tmp_path: Path) -> None:
    assert "set KUBECONFIG on the worker, or create ~/.kube/config" in KubernetesCredentials().missing()
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").touch()
    assert KubernetesCredentials().missing() == ""


def test_one_of_several_files_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there, away = tmp_path / "there", tmp_path / "away"
    monkeypatch.setenv("KUBECONFIG", str(away))
    assert KubernetesCredentials().missing().startswith(f"KUBECONFIG names {away}, which is not a file")
    there.touch()
    monkeypatch.setenv("KUBECONFIG", f"{away}:{there}")
    assert KubernetesCredentials().missing() == ""


def test_a_pod_has_an_account_unless_a_context_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "token").touch()
    assert KubernetesCredentials().is_pod
    assert KubernetesCredentials().missing() == ""
    assert str(KubernetesCredentials()) == "the service account of its pod"
    assert not KubernetesCredentials("etl").is_pod
    assert str(KubernetesCredentials("etl")) == "~/.kube/config (context etl)"


def test_the_remedy_of_a_refusal_names_the_source_of_the_rights() -> None:
    assert "~/.kube/config" in KubernetesCredentials().remedy(401)
    assert "docs/backends.md" in KubernetesCredentials().remedy(403)
    assert KubernetesCredentials().remedy(500) == ""
