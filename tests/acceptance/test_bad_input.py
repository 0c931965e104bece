"""Bad input that is refused before a job exists: the error message and the exit code."""

import shutil
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import Shell, assert_no_traceback

UNREACHABLE_WITHIN_S = 20
"""One second is the configured timeout; the rest is for a busy machine."""


@pytest.fixture
def script(shell: Shell) -> Path:
    """A valid program: the expected error has another cause."""
    return shell.write("well.py", "print('well')\n")


# ---------------------------------------------------------------------- the machine
@pytest.fixture
def path_without_java(tmp_path: Path) -> Path:
    """A PATH with the tools of a shell script, and no Java."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "env"):
        found = shutil.which(name)
        assert found is not None
        (programs / name).symlink_to(found)
    return programs


COMMANDS_WITH_JAVA = [["run", "well.py"], ["up"], ["worker"], ["zookeeper"], ["zkcli", "ls", "/"]]
"""On a running server: without one, zkcli would fail for that reason."""


@pytest.mark.parametrize("command", COMMANDS_WITH_JAVA, ids=lambda command: command[0])
def test_no_java(shared_shell: Shell, script: Path, path_without_java: Path, command: list[str]) -> None:
    assert script.exists()
    shared_shell.environment.pop("JAVA_HOME", None)
    ended = shared_shell.type_quickly(*command, PATH=str(path_without_java))
    assert_error(ended, 1, "Java 17 or newer is needed and none was found", "install", "JAVA_HOME")


@pytest.mark.parametrize("command", COMMANDS_WITH_JAVA, ids=lambda command: command[0])
def test_java_11(shared_shell: Shell, script: Path, path_without_java: Path, command: list[str]) -> None:
    assert script.exists()
    java = path_without_java / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    shared_shell.environment.pop("JAVA_HOME", None)
    ended = shared_shell.type_quickly(*command, PATH=str(path_without_java))
    assert_error(ended, 1, "Java 17 or newer is needed and version 11 was found", str(java), "install")


def test_a_java_home_without_java(shell: Shell, script: Path, tmp_path: Path) -> None:
    ended = shell.type("run", str(script), JAVA_HOME=str(tmp_path))
    assert_error(ended, 1, f"{tmp_path}/bin/java (JAVA_HOME)", "install")


@pytest.mark.parametrize("command", ["up", "zookeeper"])
def test_port_taken(shell: Shell, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ended = shell.type(command, "--port", str(port))
    assert_error(ended, 1, f"port {port} on 127.0.0.1 is taken", "choose another port")


@pytest.mark.parametrize(
    "command", [["run", "well.py"], ["up"], ["worker"], ["zookeeper"]], ids=lambda command: command[0]
)
def test_state_directory_not_writable(shell: Shell, script: Path, command: list[str]) -> None:
    # Below a file: permissions do not stop root.
    directory = script / "state"
    ended = shell.type_quickly(*command, ORCHESTRATOR_STATE_DIR=str(directory))
    assert_error(ended, 1, f"the state directory {directory} cannot be written", "ORCHESTRATOR_STATE_DIR")


def test_a_second_up_in_the_same_directory(shell: Shell) -> None:
    first = shell.start("up")
    first.wait_for_words("Ctrl-C ends them")
    ended = shell.type("up")
    assert_error(ended, 5, "is in use by the server at 127.0.0.1:", f"run by process {first.pid} (up)")
    first.terminate()
    assert first.wait(60).code == 143


# ---------------------------------------------------------------------- ZooKeeper
COMMANDS_OF_EACH_KIND = [
    ["run", "well.py"],
    ["worker"],
    ["job", "submit", "well.py"],
    ["job", "list"],
    ["zkcli", "ls", "/"],
]
OTHER_COMMANDS = [
    ["job", "show", "some"],
    ["job", "wait", "some"],
    ["job", "kill", "some"],
    ["job", "logs", "some"],
    ["queue", "list"],
    ["queue", "show", "accept"],
]


def _name(command: list[str]) -> str:
    return "-".join(command[:2])


@pytest.fixture(scope="module")
def closed_port() -> Iterator[int]:
    """A port without a listener, reserved for the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_zookeeper_unreachable_within_the_configured_timeout(
    shell: Shell, script: Path, closed_port: int
) -> None:
    assert script.exists()
    hosts = f"127.0.0.1:{closed_port}"
    shell.environment |= {"ZOOKEEPER_HOSTS": hosts, "ORCHESTRATOR_CONNECT_TIMEOUT": "1s"}
    shell.environment["ORCHESTRATOR_WORKER_CONNECT_TIMEOUT"] = "1s"
    commands = [*COMMANDS_OF_EACH_KIND, *OTHER_COMMANDS]
    began = time.monotonic()
    with ThreadPoolExecutor(len(commands)) as at_once:
        ends = list(at_once.map(lambda words: shell.type_quickly(*words), commands))
    assert time.monotonic() - began < UNREACHABLE_WITHIN_S
    for ended in ends:
        assert_error(ended, 3, f"ZooKeeper at {hosts} did not answer within 1 s", "ZOOKEEPER_HOSTS")


@pytest.mark.parametrize(
    "command",
    [*COMMANDS_OF_EACH_KIND[1:], *OTHER_COMMANDS],  # `run` starts its own server
    ids=_name,
)
def test_no_server_and_no_configuration(shell: Shell, script: Path, command: list[str]) -> None:
    assert script.exists()
    ended = shell.type_quickly(*command)
    assert_error(ended, 3, "no ZooKeeper to talk to", "ZOOKEEPER_HOSTS", "orchestrator up")


# ---------------------------------------------------------------------- jobs
@pytest.mark.parametrize("command", ["show", "wait", "kill", "logs"])
def test_unknown_job(shared_shell: Shell, command: str) -> None:
    assert_error(shared_shell.type("job", command, "nobody"), 4, "no job has the id 'nobody'")


def test_logs_of_a_job_that_never_ran(shared_shell: Shell, script: Path) -> None:
    assert shared_shell.type("job", "submit", str(script), "--id", "waits").code == 0
    assert_error(shared_shell.type("job", "logs", "waits"), 4, "'waits'", "logs")


@pytest.mark.parametrize("command", ["submit", "run"])
def test_id_taken(shared_shell: Shell, script: Path, command: str) -> None:
    assert shared_shell.type("job", "submit", str(script), "--id", "mine").code == 0
    arguments = ["job", "submit"] if command == "submit" else ["run"]
    ended = shared_shell.type_quickly(*arguments, str(script), "--id", "mine")
    assert_error(ended, 5, "id 'mine' is taken", "choose another id")
    (job,) = shared_shell.jobs()
    assert (job["id"], job["status"]) == ("mine", "ACCEPT"), "the first job is unchanged"


@pytest.mark.parametrize("bad", ["with blank", "sl/ash", ".", "..", "x" * 129, "ümlaut"])
@pytest.mark.parametrize("command", [["run"], ["job", "submit"]], ids=["run", "submit"])
def test_bad_id(shell: Shell, script: Path, command: list[str], bad: str) -> None:
    # No server: invalid input is refused before a connection.
    ended = shell.type_quickly(*command, str(script), "--id", bad)
    assert_error(ended, 2, f"id {bad!r} is not valid", "1 to 128")


@pytest.mark.parametrize("bad", ["soon", "10 x", "-5s", "30"])
def test_bad_duration(shell: Shell, script: Path, bad: str) -> None:
    ended = shell.type("job", "submit", str(script), f"--delay={bad}")
    assert_error(ended, 2, f"--delay: {bad!r} is not a duration", "30s")
    ended = shell.type("job", "wait", "some", f"--timeout={bad}")
    assert_error(ended, 2, f"--timeout: {bad!r} is not a duration", "30s")


def test_wait_that_takes_too_long(shared_shell: Shell, script: Path) -> None:
    assert shared_shell.type("job", "submit", str(script), "--id", "waits").code == 0
    ended = shared_shell.type("job", "wait", "waits", "--timeout", "500ms")
    assert_error(ended, 6, "'waits' is still ACCEPT after 0.5 s")


def test_a_traceback_is_shown_on_request(shell: Shell) -> None:
    ended = shell.type("job", "list", "-v")
    assert ended.code == 3
    assert "Traceback (most recent call last)" in ended.stderr
    assert "error: no ZooKeeper to talk to" in ended.stderr
    assert_no_traceback(shell.type("job", "list").stderr)


def test_invalid_settings(shell: Shell) -> None:
    assert_error(shell.type("job", "list", ORCHESTRATOR_SLOTS="many"), 2, "slots")
    config = shell.write("config.toml", "slotz = 2\n")
    ended = shell.type("job", "list", ORCHESTRATOR_CONFIG=str(config))
    assert_error(ended, 2, "unknown field 'slotz'; did you mean 'slots'?")
    config.write_text("slots = = 2\n")
    assert_error(shell.type("job", "list", ORCHESTRATOR_CONFIG=str(config)), 2, str(config))
