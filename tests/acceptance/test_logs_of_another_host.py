"""`job logs` on a host without the files of a job: through the worker of the host that has them."""

import os
import re
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import COMMAND, COMMAND_TIMEOUT_S, Running, Shell, program_that_waits
from tests.acceptance.terminal import Terminal
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(400)]

PROGRAM = """
import sys
print("printed", flush=True)
print('Setting default log level to "WARN".', file=sys.stderr)
print("26/03/01 10:00:00 WARN NativeCodeLoader: of Spark", file=sys.stderr)
print("complained", file=sys.stderr, flush=True)
"""


def elsewhere(shell: Shell) -> str:
    """The state directory of another host."""
    return str(shell.directory / "elsewhere")


def has_begun(reader: Running) -> bool:
    return "out   | begins\n" in reader.stdout or reader.has_ended


def worker_with_a_job(shell: Shell, program: str, *, wait: bool = True) -> Running:
    worker = shell.start("worker")
    worker.wait_for_words("slot", COMMAND_TIMEOUT_S)
    shell.python_job("speaks", program)
    assert shell.type("job", "submit", "speaks.yaml", "--id", "speaks").code == 0
    if wait:
        assert shell.type("job", "wait", "speaks").code == 0
    return worker


def test_the_usual_view_is_the_same_on_each_host_until_the_worker_is_gone(stand_in_shell: Shell) -> None:
    shell = stand_in_shell
    worker = worker_with_a_job(shell, PROGRAM)
    here = shell.type("job", "logs", "speaks")
    lines = here.stdout.splitlines()
    assert sorted(lines) == [
        "err   | complained",
        "out   | printed",
        "spark | 26/03/01 10:00:00 WARN NativeCodeLoader: of Spark",
    ]
    there = shell.type("job", "logs", "speaks", ORCHESTRATOR_STATE_DIR=elsewhere(shell))
    assert (there.code, there.stdout, there.stderr) == (0, here.stdout, "")
    assert (
        "default log level"
        in shell.type("job", "logs", "speaks", "--spark", ORCHESTRATOR_STATE_DIR=elsewhere(shell)).stdout
    )
    plain = shell.type("job", "logs", "speaks", "--stream", "stdout", ORCHESTRATOR_STATE_DIR=elsewhere(shell))
    assert plain.stdout == "printed\n", "a single stream has no prefix"
    assert "| " not in shell.type("job", "logs", "speaks", "--no-prefix").stdout
    found = shell.type(
        "job", "logs", "speaks", "--grep", "^comp", "--level", "info", ORCHESTRATOR_STATE_DIR=elsewhere(shell)
    )
    assert found.stdout == "err   | complained\n"

    worker.terminate()
    assert worker.wait().code == 0
    ended = shell.type("job", "logs", "speaks", ORCHESTRATOR_STATE_DIR=elsewhere(shell))
    host = re.escape(os.uname().nodename)
    assert_error(ended, 1, "the logs of speaks attempt 1 are on host")
    assert re.search(rf"on host {host}, and no worker runs there.*start `orchestrator worker`", ended.stderr)
    assert shell.type("job", "logs", "speaks").stdout == here.stdout, "files of this host need no worker"


def test_a_reader_follows_a_job_of_another_host_and_leaves_nothing_when_it_is_killed(
    stand_in_shell: Shell, tmp_path: Path
) -> None:
    shell, go = stand_in_shell, tmp_path / "go"
    worker_with_a_job(shell, f"print('begins', flush=True)\n{program_that_waits(go, go)}", wait=False)
    command = ("job", "logs", "speaks", "--follow")
    killed, follower = (shell.start(*command, ORCHESTRATOR_STATE_DIR=elsewhere(shell)) for _ in range(2))
    for reader in (killed, follower):
        wait_until(partial(has_begun, reader), COMMAND_TIMEOUT_S, "the first line is seen")
    killed.kill()
    go.touch()
    ended = follower.wait()
    assert (ended.code, ended.stdout.splitlines()) == (0, ["out   | begins", "out   | went on"])
    root = shell.environment["ORCHESTRATOR_ROOT"]
    wait_until(
        lambda: shell.type("zkcli", "ls", "-R", f"{root}/log-requests").stdout.count("log-requests/") == 1,
        COMMAND_TIMEOUT_S,
        "only the folder of the worker is left",
    )


def test_on_a_terminal_prefixes_have_colours_and_the_program_has_no_say(stand_in_shell: Shell) -> None:
    shell = stand_in_shell
    worker_with_a_job(shell, "print('\\x1b]0;owned\\x07\\x1b[31mred')")
    environment = {name: value for name, value in shell.environment.items() if name != "NO_COLOR"}
    with Terminal([*COMMAND, "job", "logs", "speaks"], shell.directory, environment) as terminal:
        assert terminal.exit_code() == 0
        shown = terminal.raw()
    assert "\x1b[36mout   |\x1b[0m \\x1b]0;owned\\x07\\x1b[31mred" in shown
