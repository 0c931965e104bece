"""A command that gets no answer of ZooKeeper says on a terminal that it waits, then what each server does."""

import socket
from collections.abc import Iterator

import pytest

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import COMMAND, Shell
from tests.acceptance.terminal import Terminal
from tests.waiting import wait_until

LIST = ("job", "list")


@pytest.fixture
def hosts(shell: Shell) -> Iterator[str]:
    """Two servers in the settings: one accepts connections and says nothing, one refuses them."""
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        found = ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in (silent, closed))
        shell.environment |= {"ZOOKEEPER_HOSTS": found, "ORCHESTRATOR_CONNECT_TIMEOUT": "5s"}
        yield found


def test_the_wait_is_shown_on_a_terminal_and_its_end_has_each_server(shell: Shell, hosts: str) -> None:
    with Terminal([*COMMAND, *LIST], shell.directory, shell.environment, columns=200) as terminal:
        wait_until(lambda: terminal.is_closed, 60, "the command has ended")
        assert terminal.exit_code() == 3
        waiting, error, silent, closed = terminal.text().splitlines()
    assert waiting == f"waiting for ZooKeeper at {hosts} (up to 5 s) ..."
    assert error.startswith(f"error: ZooKeeper at {hosts} did not answer within 5 s; ")
    assert "accepts connections, but has no majority" in silent
    assert closed.endswith("  not reached: Connection refused")


def test_a_quiet_command_on_a_terminal_shows_the_error_alone(shell: Shell, hosts: str) -> None:
    assert hosts
    with Terminal([*COMMAND, *LIST, "--quiet"], shell.directory, shell.environment, columns=200) as terminal:
        wait_until(lambda: terminal.is_closed, 60, "the command has ended")
        assert terminal.text().startswith("error: ")


def test_a_pipe_gets_the_error_alone(shell: Shell, hosts: str) -> None:
    ended = shell.type(*LIST)
    assert_error(
        ended, 3, hosts, "accepts connections, but has no majority", "not reached: Connection refused"
    )
    assert ended.stderr.startswith("error: ")
