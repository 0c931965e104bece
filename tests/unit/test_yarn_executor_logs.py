"""Short logs of executors on YARN nodes are copied, under the executor number in the log."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from spark_runner.protocol.errors import BackendUnreachable
from spark_runner.runners.yarn import logs as logs_module
from spark_runner.runners.yarn.api import Container, ResourceManager, YarnApplication
from spark_runner.runners.yarn.logs import YarnExecutorLogs

RUNS = YarnApplication(
    "application_1", "RUNNING", "UNDEFINED", "", frozenset(), 1, "http://n:1/x/container_1/root"
)
ENDED = replace(RUNS, state="FINISHED")
BEGAN = b"INFO: Starting executor ID 7 on host n\n"


class Manager:
    """One node with the containers of one application; `asked` are the logs that were read."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {"container_1": {"stderr": BEGAN}}
        self.asked: list[str] = []
        self.is_silent = False

    def containers(self, _application: YarnApplication) -> list[Container]:
        return [Container(name, "http://n:1") for name in self.files]

    def log_sizes(self, container: Container) -> dict[str, int]:
        if self.is_silent:
            raise BackendUnreachable("it does not answer")
        return {name: len(data) for name, data in self.files[container.id].items()}

    def log(self, container: Container, name: str, _last: int) -> bytes:
        self.asked.append(f"{container.id}/{name}")
        return self.files[container.id][name]


@pytest.fixture
def manager() -> Manager:
    return Manager()


@pytest.fixture
def logs(manager: Manager, tmp_path: Path) -> YarnExecutorLogs:
    return YarnExecutorLogs(tmp_path, cast("ResourceManager", manager))


def copied(logs: YarnExecutorLogs, application: YarnApplication = RUNS) -> dict[tuple[str, str], bytes]:
    found = logs.copy("run-1", "inc", application)
    assert {log.incarnation for log in found} <= {"inc"}
    return {(log.executor, log.stream): log.path.read_bytes() for log in found}


def test_a_log_that_grows_is_copied_and_an_unchanged_one_is_not_read_again(
    manager: Manager, logs: YarnExecutorLogs
) -> None:
    assert copied(logs) == {}, "the first container is that of the driver or of the application master"
    manager.files["container_2"] = {"stdout": b"hi\n", "stderr": BEGAN}
    assert copied(logs) == {("7", "stdout"): b"hi\n", ("7", "stderr"): BEGAN}
    manager.asked.clear()
    copied(logs)
    assert manager.asked == []
    manager.files["container_2"]["stdout"] += b"ho\n"
    assert copied(logs)["7", "stdout"] == b"hi\nho\n"
    assert manager.asked == ["container_2/stdout"]


def test_the_log_of_an_executor_without_a_number_is_copied_later(
    manager: Manager, logs: YarnExecutorLogs
) -> None:
    manager.files["container_2"] = {"stdout": b"early\n", "stderr": b""}
    assert copied(logs) == {}
    manager.files["container_2"]["stderr"] = BEGAN
    assert copied(logs) == {("7", "stdout"): b"early\n", ("7", "stderr"): BEGAN}


def test_a_log_that_is_too_long_stays_as_it_was_copied(
    manager: Manager, logs: YarnExecutorLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_module, "MAX_LOG_BYTES", 100)
    manager.files["container_2"] = {"stderr": BEGAN}
    assert copied(logs) == {("7", "stderr"): BEGAN}
    manager.files["container_2"]["stderr"] += b"x" * 100
    assert copied(logs) == {("7", "stderr"): BEGAN}


def test_after_the_end_it_is_copied_once_more(manager: Manager, logs: YarnExecutorLogs) -> None:
    manager.files["container_2"] = {"stderr": BEGAN}
    copied(logs)
    manager.files["container_2"]["stderr"] += b"last words\n"
    assert copied(logs, ENDED)["7", "stderr"].endswith(b"last words\n")
    manager.asked.clear()
    copied(logs, ENDED)
    assert manager.asked == []


def test_a_node_that_is_silent_leaves_what_was_copied(manager: Manager, logs: YarnExecutorLogs) -> None:
    manager.files["container_2"] = {"stderr": BEGAN}
    copied(logs)
    manager.is_silent = True
    assert copied(logs) == {("7", "stderr"): BEGAN}
