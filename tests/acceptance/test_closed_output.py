"""The reader of the output ends first, or its disk is full: the exit code is true, without noise."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.cli.exits import Exit

CLOSED_PIPE = 141
"""128 + SIGPIPE, as of every program that writes to a closed pipe."""


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "orchestrator", *arguments]


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ZooKeeper runs here."""
    for name in [each for each in os.environ if each.startswith(("ORCHESTRATOR_", "ZOOKEEPER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ORCHESTRATOR_STATE_DIR", str(tmp_path / "state"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("init", "--file", "-"),
        ("--help",),
        ("--version",),
        ("config", "show", "-q"),
        ("job", "list", "--help"),
    ],
)
def test_a_closed_pipe_for_the_data_ends_a_command_as_the_signal_does(
    closed_pipe: int, arguments: tuple[str, ...]
) -> None:
    ended = subprocess.run(
        command(*arguments), stdout=closed_pipe, stderr=subprocess.PIPE, check=False, text=True
    )
    assert (ended.returncode, ended.stderr) == (CLOSED_PIPE, "")


def test_an_error_that_none_reads_keeps_its_exit_code(closed_pipe: int) -> None:
    for stderr in (closed_pipe, os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC)):
        ended = subprocess.run(command("job", "list"), stdout=subprocess.PIPE, stderr=stderr, check=False)
        assert (ended.returncode, ended.stdout) == (Exit.UNREACHABLE, b"")


def test_data_that_are_not_written_are_an_error() -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        ended = subprocess.run(
            command("init", "--file", "-"), stdout=full, stderr=subprocess.PIPE, check=False, text=True
        )
    assert ended.returncode == Exit.FAILED
    assert "No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr
