"""Where references find their values, and what keeps them from finding others."""

import importlib.metadata
import os
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.config.references import ReferenceSettings
from spark_runner.references.errors import Unresolved
from spark_runner.references.reference import Reference
from spark_runner.references.secret_files import MAX_SECRET_BYTES
from spark_runner.references.sources import Sources

SECRET = "Q7tR2mP4x"  # noqa: S105 - a secret of a test


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "crm"
    made.mkdir()
    return made


def secret(folder: Path, key: str = "key") -> str:
    scopes = {"crm": {"folder": str(folder)}}
    return Sources(secrets=scopes).value(Reference("secret", f"crm/{key}"))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"abc", "abc"),
        (b"abc\n", "abc"),
        (b"abc\r\n", "abc"),
        (b"abc\n\n", "abc\n"),
        (b" a b \n", " a b "),
        ("ü\n".encode(), "ü"),
    ],
)
def test_a_file_loses_one_newline_at_its_end(folder: Path, data: bytes, value: str) -> None:
    (folder / "key").write_bytes(data)
    assert secret(folder) == value


def test_a_link_within_the_folder_is_followed_as_kubernetes_makes_it(folder: Path) -> None:
    (folder / "..2026").mkdir()
    (folder / "..2026" / "key").write_text(SECRET)
    (folder / "..data").symlink_to("..2026")
    (folder / "key").symlink_to("..data/key")
    assert secret(folder) == SECRET


def test_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder.parent / "other").write_text(SECRET)
    (folder / "key").symlink_to("../other")
    with pytest.raises(Unresolved, match="is a link out of that folder"):
        secret(folder)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"\xff" + SECRET.encode(), "is not text in UTF-8"),
        (SECRET.encode() * MAX_SECRET_BYTES, "is longer than 65,536 bytes"),
    ],
    ids=["empty", "newline", "binary", "large"],
)
def test_a_file_that_is_no_secret_is_an_error_without_its_text(folder: Path, data: bytes, words: str) -> None:
    (folder / "key").write_bytes(data)
    with pytest.raises(Unresolved) as caught:
        secret(folder)
    assert words in str(caught.value)
    assert "${secret:crm/key} has no value" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_is_no_file_is_refused_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "key")
    with pytest.raises(Unresolved, match="is a pipe, not a file"):
        secret(folder)
    with pytest.raises(Unresolved, match="there is no file missing in"):
        secret(folder, "missing")


def test_only_listed_variables_have_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRM_PASSWORD", SECRET)
    monkeypatch.setenv("HOME_OF_OTHERS", "x")
    found = Sources(environment=("CRM_*",))
    assert found.value(Reference("env", "CRM_PASSWORD")) == SECRET
    with pytest.raises(Unresolved, match=r"references\.environment does not list"):
        found.value(Reference("env", "HOME_OF_OTHERS"))
    with pytest.raises(Unresolved, match=r"references\.environment does not list"):
        Sources().value(Reference("env", "CRM_PASSWORD"))
    with pytest.raises(Unresolved, match="has no variable CRM_USER"):
        found.value(Reference("env", "CRM_USER"))
    by_prefix = Sources(secrets={"crm": {"prefix": "CRM_"}})
    assert by_prefix.value(Reference("secret", "crm/PASSWORD")) == SECRET


def provide(key: str, options: Mapping[str, str]) -> str:
    if key == "fails":
        raise RuntimeError(SECRET)
    return f"{options['at']}-{key}"


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Sources:
    def found(*, group: str, name: str) -> list[EntryPoint]:
        return [EntryPoint(name, f"{__name__}:provide", group)] if name == "vault" else []

    monkeypatch.setattr(importlib.metadata, "entry_points", found)
    monkeypatch.setattr(EntryPoint, "load", lambda _: provide)
    return Sources(secrets={"crm": {"provider": "vault", "options": {"at": "here"}}})


def test_a_provider_gives_values_and_its_error_shows_none(provider: Sources) -> None:
    assert provider.value(Reference("secret", "crm/key")) == "here-key"
    with pytest.raises(Unresolved) as caught:
        provider.value(Reference("secret", "crm/fails"))
    assert "provider 'vault' failed with RuntimeError" in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "document",
    [
        {"environment": ["A-B"]},
        {"environment": ["a b"]},
        {"secrets": {"a/b": {"folder": "/x"}}},
        {"secrets": {"crm": {}}},
        {"secrets": {"crm": {"folder": "/x", "provider": "y"}}},
        {"secrets": {"crm": {"folder": "/x", "options": {"a": "b"}}}},
        {"secrets": {"crm": {"kubernetes": "Upper_Case"}}},
        {"secrets": {"crm": {"fodler": "/x"}}},
    ],
)
def test_wrong_settings_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ReferenceSettings.model_validate(document)


def test_a_secret_of_kubernetes_is_a_folder_of_the_pod() -> None:
    made = ReferenceSettings.model_validate(
        {
            "environment": "A, B_*",
            "secrets": {
                "crm": {"kubernetes": "crm-login"},
                "erp": {"kubernetes": "erp-login", "folder": "/etc/erp"},
                "dwh": {"provider": "vault"},
            },
        }
    )
    assert made.environment == ("A", "B_*")
    assert made.mounts({"crm", "erp", "dwh"}) == {
        "crm-login": "/etc/orchestrator/secrets/crm",
        "erp-login": "/etc/erp",
    }
    assert made.mounts({"dwh"}) == {}
    assert made.sources({"crm"}).secrets == {"crm": {"folder": "/etc/orchestrator/secrets/crm"}}
