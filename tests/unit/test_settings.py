from pathlib import Path

import pytest

from orchestrator.errors import SettingsError
from orchestrator.settings import load_settings


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in (
        "ZOOKEEPER_HOSTS",
        "ORCHESTRATOR_ZOOKEEPER_HOSTS",
        "ORCHESTRATOR_SLOTS",
        "ORCHESTRATOR_STATE_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "config.toml"
    monkeypatch.setenv("ORCHESTRATOR_CONFIG", str(file))
    return file


def test_defaults_need_nothing() -> None:
    settings = load_settings()
    assert settings.zookeeper_hosts == ""
    assert settings.root == "/orchestrator"
    assert settings.slots >= 1


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare_environment.write_text('slots = 2\nretention = "3d"\nzookeeper_hosts = "file:1"\n', encoding="utf-8")
    assert (load_settings().slots, load_settings().retention) == (2, 3 * 86400)
    monkeypatch.setenv("ORCHESTRATOR_SLOTS", "3")
    monkeypatch.setenv("ZOOKEEPER_HOSTS", "env:1")
    assert load_settings().slots == 3
    assert load_settings().zookeeper_hosts == "env:1"
    assert load_settings(slots=4).slots == 4
    assert load_settings(slots=None).slots == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("slot = 2", "unknown field 'slot'; did you mean 'slots'?"),
        ('slots = "many"', "field 'slots'"),
        ('retention = "for ever"', "not a duration"),
        ('root = "no-slash"', "is not a path"),
        ("slots ==", "config.toml"),
    ],
)
def test_a_mistake_in_the_file_is_named(bare_environment: Path, text: str, words: str) -> None:
    bare_environment.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=words.replace("?", r"\?")):
        load_settings()
