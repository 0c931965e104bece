"""A command that finds a server which does not serve yet waits for it, and says so if it waits in vain."""

import time
from pathlib import Path

import pytest

from orchestrator.client import connect
from orchestrator.client.connect import find_zookeeper
from orchestrator.config.settings import Settings
from orchestrator.model.errors import NotRunning
from queues import private_directory
from queues.embedded.directory import RunningServer, announce, locked


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(state_dir=tmp_path)
    private_directory(settings.zookeeper_dir)
    return settings


def test_a_server_that_starts_is_waited_for(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []

    def look_again(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            announce(settings.zookeeper_dir, RunningServer("127.0.0.1:1", 1, "up"))

    monkeypatch.setattr(time, "sleep", look_again)
    with locked(settings.zookeeper_dir):
        assert find_zookeeper(settings).zookeeper_hosts == "127.0.0.1:1"
    assert len(looks) == 3


def test_a_server_that_does_not_come_is_named_in_the_error(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "_START_SECONDS", 0.1)
    with locked(settings.zookeeper_dir), pytest.raises(NotRunning, match="does not serve yet: try again"):
        find_zookeeper(settings)


def test_a_server_that_gives_up_is_not_waited_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = locked(settings.zookeeper_dir)
    lock.__enter__()
    monkeypatch.setattr(time, "sleep", lambda _: lock.__exit__(None, None, None))
    with pytest.raises(NotRunning, match="no ZooKeeper to talk to"):
        find_zookeeper(settings)
