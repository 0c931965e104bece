"""The messages of docs/troubleshooting.md are those that the commands print; no job runs here."""

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.handlers import verdict
from tests.acceptance.support import Ended, Shell

PAGE = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text("utf-8")
NO_WORKER = "waits:    no worker is connected; `orchestrator worker` starts one"
NO_ANSWER = (
    "error: ZooKeeper at 127.0.0.1:9 did not answer within 1 s; "
    "check that it runs, and its address, which comes from ZOOKEEPER_HOSTS"
)


@pytest.fixture
def waiting(shared_shell: Shell) -> Shell:
    """A job that no worker takes."""
    shared_shell.write("job.py", "print('never')\n")
    assert shared_shell.type("job", "submit", "job.py", "--id", "w1").code == 0
    return shared_shell


def _unreachable(shell: Shell) -> Ended:
    return shell.type("job", "list", ZOOKEEPER_HOSTS="127.0.0.1:9", ORCHESTRATOR_CONNECT_TIMEOUT="1s")


def _paused(shell: Shell) -> Ended:
    assert shell.type("queue", "pause", "default").code == 0
    return shell.type("job", "show", "w1")


def _of_unknown_field(shell: Shell) -> Ended:
    shell.write("bad.yaml", "name: bad\npython: job.py\nretries: {}\n")
    return shell.type("job", "submit", "bad.yaml")


@pytest.mark.parametrize(
    ("command", "code", "printed", "documented"),
    [
        (lambda shell: shell.type("job", "show", "w1"), 0, NO_WORKER, NO_WORKER),
        (_paused, 0, "pool default is paused", "| pool P is paused |"),
        (_unreachable, 3, NO_ANSWER, NO_ANSWER),
        (
            lambda shell: shell.type("job", "show", "w2"),
            4,
            "no job has the id 'w2'",
            "no job has the id '...'",
        ),
        (
            lambda shell: shell.type("job", "submit", "job.py", "--id", "w1"),
            5,
            "id 'w1' is taken",
            "| 5, id '...' is taken |",
        ),
        (
            _of_unknown_field,
            2,
            "unknown field 'retries'; did you mean 'retry'?",
            "| 2, `unknown field 'x'; did",
        ),
        (lambda shell: shell.type("job", "wait", "w1", "--timeout", "1s"), 6, "w1", "| 6 |"),
    ],
    ids=["no worker", "paused", "unreachable", "unknown id", "taken id", "unknown field", "timeout"],
)
def test_a_symptom_is_shown_as_the_page_says(
    waiting: Shell, command: Callable[[Shell], Ended], code: int, printed: str, documented: str
) -> None:
    ended = command(waiting)
    assert ended.code == code, ended.stderr
    assert printed in ended.stdout + ended.stderr
    assert documented in PAGE


def test_the_page_has_each_verdict_on_a_driver_that_left_no_outcome() -> None:
    for code, (error_class, message) in verdict._CODES.items():  # noqa: SLF001 - the one table of these messages
        words = message.partition(":")[0].partition(", so")[0]
        row = next((line for line in PAGE.splitlines() if words in line), "")
        assert f"| `{error_class}` |" in row, (code, words)
