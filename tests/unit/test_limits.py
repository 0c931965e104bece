import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from orchestrator.config import origins
from orchestrator.config.origins import Origin, local_settings, variables
from orchestrator.config.settings import Settings, load_settings
from orchestrator.model.fields import format_seconds, is_duration, parse_seconds
from orchestrator.model.limits import Limits


# ---------------------------------------------------------------------- the model
def test_a_limit_that_is_not_set_has_a_default() -> None:
    assert Limits().model_dump() == {
        "retention": 7 * 86400.0,
        "retention_count": 10_000,
        "warn_after": 3,
        "handler_errors": 5,
        "max_pools": 1_000,
        "cpu_pressure_limit": 0.0,
        "memory_pressure_limit": 20.0,
        "memory_guard": True,
    }


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention", "3d", 3 * 86400.0),
        ("retention_count", "0", 0),
        ("warn_after", "1", 1),
        ("handler_errors", "100", 100),
        ("cpu_pressure_limit", "80", 80.0),
        ("memory_pressure_limit", "0", 0.0),
        ("memory_guard", "false", False),
    ],
)
def test_values_may_be_text_as_it_is_typed(name: str, text: str, value: object) -> None:
    assert getattr(Limits.model_validate({name: text}), name) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention", 59),
        ("retention", "30"),  # no unit
        ("retention", "for ever"),
        ("retention", math.inf),
        ("retention", True),
        ("retention_count", -1),
        ("retention_count", 1.5),
        ("retention_count", True),
        ("warn_after", 0),
        ("handler_errors", 0),
        ("handler_errors", 101),
        ("cpu_pressure_limit", -0.1),
        ("cpu_pressure_limit", 100.1),
        ("memory_pressure_limit", math.nan),
        ("memory_pressure_limit", None),
        ("memory_pressure_limit", True),
        ("load_limit", 1.5),  # replaced by pressure
        ("memory_guard", "perhaps"),
        ("retentoin", 60),
    ],
)
def test_invalid_values_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValidationError, match=name):
        Limits.model_validate({name: value})


# ---------------------------------------------------------------------- durations
@given(st.integers(0, 10**12))
def test_a_duration_that_is_shown_can_be_typed(milliseconds: int) -> None:
    assert parse_seconds(format_seconds(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (0.25, "250ms"), (90, "90s"), (600, "10m"), (86400, "1d"), (604800.0, "7d"), (1.5, "1500ms")],
)
def test_a_duration_is_shown_in_the_largest_unit_that_fits(seconds: float, shown: str) -> None:
    assert format_seconds(seconds) == shown


def test_durations_are_known_as_such() -> None:
    assert [name for name, field in Limits.model_fields.items() if is_duration(field)] == ["retention"]


# ---------------------------------------------------------------------- origins of local settings
@pytest.fixture(autouse=True)
def config_toml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for field in Settings.model_fields:
        for name in variables([field]):
            monkeypatch.delenv(name, raising=False)
    file = tmp_path / "config.toml"
    file.touch()
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(file))
    return file


def shown() -> dict[str, tuple[Any, Origin, str]]:
    return {found.name: (found.value, found.origin, found.place) for found in local_settings(load_settings())}


def test_the_origin_of_each_setting_is_the_environment_the_file_or_the_default(
    config_toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_toml.write_text("slots = 2\nretention = '3d'\n", "utf-8")
    monkeypatch.setenv("orchestrator_slots", "5")  # any case will do
    found = shown()
    assert found["slots"] == (5, Origin.ENVIRONMENT, "ORCHESTRATOR_SLOTS")
    assert found["retention"] == (3 * 86400.0, Origin.FILE, str(config_toml))
    assert found["root"] == ("/orchestrator", Origin.DEFAULT, "")
    assert {name.partition(".")[0] for name in found} == set(Settings.model_fields)
    assert {"zookeeper_tls", "archive.url"} <= set(found), "a table that is not set is one line"


@pytest.mark.parametrize("name", ["ZOOKEEPER_HOSTS", "ORCHESTRATOR_ZOOKEEPER_HOSTS"])
def test_the_variable_that_was_used_is_named_where_there_are_two(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "localhost:1")
    assert shown()["zookeeper_hosts"] == ("localhost:1", Origin.ENVIRONMENT, name)


def test_the_parts_of_a_table_may_have_different_origins(
    config_toml: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    password = tmp_path / "password"
    password.write_text("the-secret\n", "utf-8")
    config_toml.write_text(
        f"zookeeper_hosts = 'localhost:1'\n[zookeeper_login]\npassword_file = '{password}'\n", "utf-8"
    )
    monkeypatch.setenv("ORCHESTRATOR_ZOOKEEPER_LOGIN__USER", "ada")
    found = shown()
    assert found["zookeeper_login.user"] == ("ada", Origin.ENVIRONMENT, "ORCHESTRATOR_ZOOKEEPER_LOGIN__USER")
    assert found["zookeeper_login.password_file"] == (str(password), Origin.FILE, str(config_toml))
    assert found["zookeeper_login.scheme"] == ("sasl", Origin.DEFAULT, "")
    assert "the-secret" not in str(found)


def test_a_table_in_one_variable_is_named_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOOKEEPER_HOSTS", "localhost:1")
    monkeypatch.setenv("ORCHESTRATOR_ZOOKEEPER_TLS", '{"verify_hostname": false}')
    assert shown()["zookeeper_tls.verify_hostname"] == (
        False,
        Origin.ENVIRONMENT,
        "ORCHESTRATOR_ZOOKEEPER_TLS",
    )


def test_a_secret_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithSecret(Settings):
        api_key: SecretStr = SecretStr("")

    monkeypatch.setattr(origins, "Settings", WithSecret)
    monkeypatch.setenv("ORCHESTRATOR_API_KEY", "the-secret")
    (found,) = [
        item for item in local_settings(WithSecret(api_key=SecretStr("the-secret"))) if item.name == "api_key"
    ]
    assert (found.value, found.origin) == ("**********", Origin.ENVIRONMENT)
