import io
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.grid import cut, fit, width
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import show_fact, show_rows, stdout_console, table

UUID = "22384280-76cc-4af1-bfb5-fbefa83be498"
HEADINGS = ["id", "name", "status", "error"]
ROW = [UUID, "totals of the day", "ERROR_FAIL", "the table of rates is empty, and nothing can be joined"]


class OneTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def one_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> OneTerminal:
    """The terminal of a test; a fixture cannot set it, because pytest sets stdout again before the test."""
    made = OneTerminal()
    monkeypatch.setattr(sys, "stdout", made)
    for name, value in {"TERM": "xterm", "COLUMNS": str(columns), "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    return made


def lines_on(columns: int, monkeypatch: pytest.MonkeyPatch, shown: Any) -> list[str]:
    terminal = one_terminal(monkeypatch, columns)
    stdout_console().print(shown)
    text = terminal.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")
    return text.splitlines()


@pytest.mark.parametrize(
    ("columns", "heads", "values"),
    [
        (140, HEADINGS, ROW),
        (100, HEADINGS, [*ROW[:3], "the table of rates is empty…"]),
        (80, ["id", "status", "error"], [UUID, "ERROR_FAIL", "the table of rates is empty…"]),
        (60, ["id", "status"], [UUID, "ERROR_FAIL"]),
        (40, ["id", "status"], ["22384280-76cc-4af1-bfb5-fb…", "ERROR_FAIL"]),
        (12, ["id", "stat…"], ["223…", "ERRO…"]),
    ],
)
def test_columns_are_left_out_by_rank_and_long_values_are_cut(
    columns: int, heads: list[str], values: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    head, rule, row = lines_on(columns, monkeypatch, table(HEADINGS, [ROW], ("name", "error")))
    assert [each.strip() for each in re.split(" {3,}", head.strip())] == heads
    assert [each.strip() for each in re.split(" {3,}", row)] == values
    assert max(map(len, (head, rule, row))) <= columns


def test_a_pipe_gets_whole_values_and_no_blanks_at_the_ends_of_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [dict(zip(HEADINGS, ROW, strict=True)), dict.fromkeys(HEADINGS, "")]
    show_rows(rows, {name: name for name in HEADINGS}, OutputFormat.TABLE)
    head, rule, row, empty = capsys.readouterr().out.splitlines()
    assert row == "   ".join([UUID, "totals of the day", "ERROR_FAIL", ROW[-1]])
    assert (head.rstrip(), empty) == (head, "")
    assert len(rule) == 100 < len(row)
    show_rows([{"id": "x" * 5_000}], {"id": "id"}, OutputFormat.TABLE)
    assert max(map(len, capsys.readouterr().out.splitlines())) == 5_000


def test_a_column_that_fits_comes_back_when_a_wider_one_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = table(
        ["id", "created", "name", "error"],
        [["1", "7 s ago", "sales", "x" * 30]],
        ("created", "name", "error"),
    )
    assert lines_on(25, monkeypatch, shown)[0].split() == ["id", "created", "name"]
    assert lines_on(15, monkeypatch, shown)[0].split() == ["id", "name"]


def test_an_empty_column_is_left_out_before_a_time_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ["1", "2026-12-07 18:32:44 UTC", "ok", ""]
    shown = table(["id", "due", "status", "reason"], [row], ("due", "reason"))
    assert lines_on(40, monkeypatch, shown)[2].split(maxsplit=1) == ["1", "2026-12-07 18:32:44 UTC   ok"]


def test_an_empty_column_is_missed_least(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = table(["id", "a", "callback"], [["1", "x" * 20, ""]], ("a", "callback"))
    assert lines_on(30, monkeypatch, shown)[0].split() == ["id", "a"]


def test_wide_letters_and_hostile_ones_keep_to_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["销售额按日统计报表" * 4, "🚀" * 30], ["\x1b[2J\u202eevil" * 9, "a\nb\tc"]]
    head, rule, *lines = lines_on(40, monkeypatch, table(["name", "value"], rows, ()))
    assert all(width(line) <= 40 for line in (head, rule, *lines))
    assert "\x1b" not in "".join(lines)
    assert lines[1].endswith(r"a\nb c")
    assert width(cut("销售额", 4)) == 3, "half a letter cannot be shown"


SIZES = st.lists(st.integers(1, 300), min_size=1, max_size=12)


@given(SIZES, st.integers(1, 200))
def test_a_table_is_never_wider_than_its_terminal(natural: list[int], space: int) -> None:
    shown = fit(natural, range(len(natural) - 1, 0, -1), space)
    assert 0 in shown
    assert sum(shown.values()) + 3 * (len(shown) - 1) <= space
    assert all(0 < size <= natural[index] for index, size in shown.items())
    if sum(natural) + 3 * (len(natural) - 1) <= space:
        assert shown == dict(enumerate(natural))


def test_a_fact_is_folded_between_words_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = one_terminal(monkeypatch, 40)
    show_fact("waits", "pool nightly is paused; `orchestrator queue resume nightly` ends that")
    show_fact("node", "/orchestrator/jobs/46/" + "x" * 50)
    assert terminal.getvalue().splitlines() == [
        "waits:    pool nightly is paused;",
        "          `orchestrator queue resume nightly`",
        "          ends that",
        "node:",
        "          /orchestrator/jobs/46/" + "x" * 50,
    ]
