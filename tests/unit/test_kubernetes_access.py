"""Where a worker's rights in a cluster come from, and what is said where they are missing."""

from pathlib import Path

import pytest

from spark_runner.runners.kubernetes import access
from spark_runner.runners.kubernetes.access import Access


@pytest.fixture(autouse=True)
def empty_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(access, "_ACCOUNT", tmp_path / "token")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def test_a_worker_without_a_file_is_told_where_to_put_one(tmp_path: Path) -> None:
    assert "set KUBECONFIG there, or make ~/.kube/config" in Access().missing()
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").touch()
    assert Access().missing() == ""


def test_one_of_several_files_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there, away = tmp_path / "there", tmp_path / "away"
    monkeypatch.setenv("KUBECONFIG", str(away))
    assert Access().missing().startswith(f"KUBECONFIG is {away}, where no file is")
    there.touch()
    monkeypatch.setenv("KUBECONFIG", f"{away}:{there}")
    assert Access().missing() == ""


def test_a_pod_has_an_account_unless_a_context_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "token").touch()
    assert Access().is_pod
    assert Access().missing() == ""
    assert str(Access()) == "the service account of its pod"
    assert not Access("etl").is_pod
    assert str(Access("etl")) == "~/.kube/config (context etl)"


def test_what_helps_against_a_refusal_names_whose_rights_they_are() -> None:
    assert "~/.kube/config" in Access().remedy(401)
    assert "docs/backends.md" in Access().remedy(403)
    assert Access().remedy(500) == ""
