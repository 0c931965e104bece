"""Prose on a terminal is folded between words; code, commands and pipes keep their lines."""

import io
import sys
from collections.abc import Callable

import pytest

from orchestrator.cli.exits import explain_error
from orchestrator.cli.folding import folded, width_of
from orchestrator.cli.output import show_fact, stderr_console
from orchestrator.model.errors import DefinitionError

WIDTHS = [20, 40, 60, 80]
PROSE = "no ZooKeeper to talk to: set ZOOKEEPER_HOSTS, or start one here with `orchestrator up`"
EXCERPT = (
    "flights.sql:11:5: a column of the table carriers is named twice, and a table has one of each name\n"
    "  11 | CREATE TABLE carriers (code STRING, name STRING, name STRING, country STRING, active BOOLEAN)\n"
    "     |                                            ^"
)


class OneTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], io.StringIO]:
    def make(name: str, width: int) -> io.StringIO:
        made = OneTerminal()
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr(sys, name, made)
        return made

    return make


@pytest.mark.parametrize("width", WIDTHS)
def test_a_line_is_folded_between_words_and_never_in_a_command(width: int) -> None:
    lines = folded(PROSE, width).splitlines()
    assert " ".join(lines) == PROSE
    assert all(len(line) <= width for line in lines)
    assert any("`orchestrator up`" in line for line in lines)


def test_a_path_that_is_longer_than_the_line_stays_whole() -> None:
    path = "/home/ada/.local/state/spark-job-orchestrator/zookeeper/server.log"
    assert path in folded(f"its log is {path} on this host", 40).splitlines()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_caret_stays_below_its_place(width: int) -> None:
    assert folded(EXCERPT, width).splitlines()[-2:] == EXCERPT.splitlines()[-2:]


def test_lines_after_a_fold_are_indented_as_asked() -> None:
    assert folded("one two three four five six", 22, indent=2).splitlines() == [
        "  one two three four",
        "  five six",
    ]
    assert folded("name: one two three four five", 20, hang=6).splitlines() == [
        "name: one two three",
        "      four five",
    ]


def test_a_pipe_gets_whole_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert width_of(sys.stderr) is None
    explain_error(DefinitionError(PROSE), verbose=False)
    stderr_console().print(PROSE * 3, markup=False)
    show_fact("waits", PROSE * 3)
    seen = capsys.readouterr()
    assert seen.err.splitlines() == [f"error: {PROSE}", PROSE * 3]
    assert seen.out == f"waits:    {PROSE * 3}\n"


@pytest.mark.parametrize("width", WIDTHS)
def test_errors_messages_and_facts_on_a_terminal_break_no_word(
    width: int, terminal: Callable[[str, int], io.StringIO]
) -> None:
    errors, data = terminal("stderr", width), terminal("stdout", width)
    explain_error(DefinitionError(PROSE), verbose=False)
    stderr_console().print(PROSE, markup=False)
    show_fact("next", PROSE)
    lines = [*errors.getvalue().splitlines(), *data.getvalue().splitlines()]
    assert all(len(line) <= max(width, 30) for line in lines), lines
    assert " ".join(" ".join(lines).split()) == f"error: {PROSE} {PROSE} next: {PROSE}"


def test_lines_of_others_on_stderr_are_not_folded(terminal: Callable[[str, int], io.StringIO]) -> None:
    shown = terminal("stderr", 40)
    stderr_console().print(PROSE, markup=False, soft_wrap=True)
    assert shown.getvalue() == PROSE + "\n"
