"""`orchestrator init`, and what `config show` shows of the file."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.error_output import assert_error
from tests.acceptance.support import Shell


@pytest.fixture
def target(shell: Shell) -> Path:
    """Where the commands of the shell look for their settings."""
    path = shell.directory / "etc" / "config.toml"
    shell.environment["ORCHESTRATOR_CONFIG"] = str(path)
    return path


def test_the_file_is_private_complete_and_never_replaced_unasked(shell: Shell, target: Path) -> None:
    ended = shell.type("init")
    assert (ended.code, ended.stdout) == (0, "")
    assert f"wrote {target}" in ended.stderr
    assert "orchestrator doctor" in ended.stderr
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    target.write_text(target.read_text("utf-8").replace("#slots = ", "slots = 7  # "), "utf-8")
    assert_error(shell.type("init"), 5, "--force replaces it")
    shown = shell.type("config", "show", "--changed", "-o", "json").json()
    assert {row["name"]: (row["value"], row["origin"]) for row in shown}["slots"] == (7, "file")
    assert not [row for row in shown if row["origin"] == "default"]
    assert shell.type("init", "--force", "-q").stderr == ""
    assert "slots = 7" not in target.read_text("utf-8")


def test_another_file_and_stdout(shell: Shell) -> None:
    ended = shell.type("init", "--file", "mine.toml")
    mine = shell.directory / "mine.toml"
    assert f"export ORCHESTRATOR_CONFIG={mine}" in ended.stderr
    printed = shell.type("init", "--file", "-")
    assert (printed.stdout, printed.stderr) == (mine.read_text("utf-8"), "")
    assert shell.type("config", "show", ORCHESTRATOR_CONFIG=str(mine)).code == 0


def test_a_place_that_is_no_file_is_refused(shell: Shell, target: Path) -> None:
    target.parent.mkdir()
    kept = shell.write("kept", "mine")
    target.symlink_to(kept)
    assert_error(shell.type("init"), 5, "exists and was not changed")
    assert_error(shell.type("init", "--force"), 2, "is not a regular file")
    assert kept.read_text("utf-8") == "mine"
    os.mkfifo(shell.directory / "pipe")
    for place in ("pipe", os.devnull, str(shell.directory)):
        assert_error(shell.type("init", "--force", "--file", place), 2, "is not a regular file")
    assert_error(shell.type("init", "--file", "kept/config.toml"), 2, "is not a directory")


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
from orchestrator.cli.app import run_app
sys.exit(run_app(sys.argv[1:]))
"""


@pytest.mark.parametrize("kept", [None, "slots = 3\n"])
def test_without_space_the_file_stays_as_it_was(tmp_path: Path, kept: str | None) -> None:
    target = tmp_path / "config.toml"
    if kept is not None:
        target.write_text(kept, "utf-8")
    command = [sys.executable, "-c", FULL, "init", "--file", str(target)]
    ended = subprocess.run(
        command if kept is None else [*command, "--force"], check=False, capture_output=True, text=True
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: {target} cannot be written: ")
    assert {path: path.read_text("utf-8") for path in tmp_path.iterdir()} == (
        {} if kept is None else {target: kept}
    )


def test_a_terminal_marks_what_is_not_a_default(shell: Shell, target: Path) -> None:
    target.parent.mkdir()
    target.write_text("slots = 3\n", "utf-8")
    lines = shell.type("config", "show").stdout.splitlines()
    (slots,) = [line for line in lines if line.startswith("slots ")]
    (root,) = [line for line in lines if line.startswith("root ")]
    assert (slots.split()[:3], root.split()[2]) == (["slots", "3", "file"], "default")
