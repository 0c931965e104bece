"""Most tests run commands through the fork server: the results must be those of a new interpreter."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.support import Ended, Shell

# One of each kind: help, usage errors, each refusal, success; with text, tables and documents.
COMMANDS = [
    ["--help"],
    ["job", "submit", "--help"],
    ["job", "submit"],
    ["run", "broken.sql"],
    ["job", "submit", "broken.sql"],
    ["job", "submit", "well.py", "--id", "a b"],
    ["config", "set", "retentoin", "1d"],
    ["config", "history"],
    ["logs", "tail", "--level", "loud"],
    ["cluster", "doctor", "--fix"],
    ["schedule", "list", "-o", "json"],
    ["queue", "list"],
    ["job", "list", "-o", "json"],
    ["job", "show", "nobody"],
]
WITHOUT_SERVER = [["job", "kill", "some"], ["queue", "pause", "default"], ["config", "show", "--cluster"]]


def both(shell: Shell, command: list[str]) -> tuple[Ended, Ended]:
    return shell.type_quickly(*command), shell.type_anew(*command)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_ends_as_in_a_new_interpreter(shared_shell: Shell, command: list[str]) -> None:
    shared_shell.write("broken.sql", "CREATE TABLE pets (;\n")
    shared_shell.write("well.py", "print('well')\n")
    quick, anew = both(shared_shell, command)
    assert quick == anew


@pytest.mark.parametrize("command", WITHOUT_SERVER, ids=" ".join)
def test_a_command_without_a_server_ends_as_in_a_new_interpreter(shell: Shell, command: list[str]) -> None:
    quick, anew = both(shell, command)
    assert quick == anew
    assert quick.code == 3


def test_settings_of_one_command_do_not_reach_the_next(shell: Shell, tmp_path: Path) -> None:
    config = shell.write("config.toml", "slots = 7\n")
    rows = shell.type("config", "show", "-v", "-o", "json", ORCHESTRATOR_CONFIG=str(config)).json()
    assert next(row for row in rows if row["name"] == "slots")["value"] == 7
    rows = shell.type("config", "show", "-o", "json").json()
    assert next(row for row in rows if row["name"] == "slots")["origin"] == "default"
    assert "Traceback" not in shell.type("job", "list").stderr, "-v was an option of the other command"
    assert Path.cwd() != tmp_path
    assert "ORCHESTRATOR_CONFIG" not in os.environ


def test_a_command_that_takes_too_long_is_ended(shell: Shell) -> None:
    hosts = {"ZOOKEEPER_HOSTS": "127.0.0.1:1"}
    with pytest.raises(subprocess.TimeoutExpired):
        shell.type("job", "list", timeout=0.5, **hosts)
    assert shell.type("--version").code == 0, "the next command runs"
