"""Every command of docs/sql-tools.md prints what the page shows."""

import re
import shlex
from pathlib import Path

import pytest

from orchestrator.cli.app import run_app

PAGE = (Path(__file__).parents[2] / "docs" / "sql-tools.md").read_text("utf-8")
FILES = re.findall(r"^```sql (\S+\.sql)( after)?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CONSOLE = "\n".join(re.findall(r"^```\n(\$ .*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^\$ orchestrator (.*)\n((?:(?!\$ ).*\n?)*)", CONSOLE, re.MULTILINE)


def test_the_commands_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("in/orders", "in/customers"):  # the input of its scripts
        (tmp_path / folder).mkdir(parents=True)
    for name, after, text in FILES:
        if not after:
            (tmp_path / name).write_text(text)
    assert len(COMMANDS) >= 5
    for command, expected in COMMANDS:
        run_app(shlex.split(command))
        captured = capsys.readouterr()
        lines = [line.rstrip() for line in (captured.out + captured.err).splitlines()]
        assert lines == expected.strip("\n").splitlines(), command
    for name, after, text in FILES:
        if after:
            assert (tmp_path / name).read_text() == text
