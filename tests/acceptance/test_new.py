"""`orchestrator new`: what it writes runs at once; its questions on a terminal."""

import csv
import shlex
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.support import COMMAND, Shell, assert_no_traceback, assert_nothing_is_left
from tests.acceptance.terminal import Terminal
from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

FIVE_MINUTES_S = 300


def rows(folder: Path) -> list[dict[str, str]]:
    """All rows of the CSV files of a target."""
    found = list[dict[str, str]]()
    for file in sorted(folder.glob("part-*.csv")):
        with file.open(newline="", encoding="utf-8") as opened:
            found += csv.DictReader(opened)
    return found


def test_from_nothing_to_rows_in_the_target_by_the_commands_that_it_prints(
    shell: Shell, process_mark: str
) -> None:
    started = time.monotonic()
    made = shell.type_anew("new", "totals")
    assert made.code == 0, made.stderr
    command = f"{Path(sys.executable).name} -m orchestrator "
    printed = [line.partition(command)[2] for line in made.stderr.splitlines() if command in line]
    assert [line.split()[0] for line in printed] == ["sql", "sql", "run", "job"]
    for line in printed[:3]:
        done = shell.type_anew(*shlex.split(line))
        assert done.code == 0, done.stderr
        assert_no_traceback(done.stderr)
    assert_nothing_is_left(process_mark)
    assert time.monotonic() - started < FIVE_MINUTES_S
    result = {
        row["customer"]: (row["orders"], row["total"]) for row in rows(shell.directory / "output/totals")
    }
    assert result == {"Ada": ("2", "139.50"), "Grace": ("2", "140.50"), "Edsger": ("1", "7.25")}


def test_a_job_for_files_of_the_user_with_a_schedule_runs(shell: Shell, process_mark: str) -> None:
    shell.write("in put.csv", "a b;from;day;n\n1;x;2026-01-31;0.5\n2;'y';2026-02-01;\n")
    made = shell.type_anew("new", "copied", "--source", "in put.csv", "--schedule", "every 10m")
    assert made.code == 0, made.stderr
    done = shell.type_anew("run", "copied.yaml")
    assert_nothing_is_left(process_mark)
    assert done.code == 0, done.stderr
    assert rows(shell.directory / "output" / "copied") == [
        {"a b": "1", "from": "x", "day": "2026-01-31", "n": "0.5"},
        {"a b": "2", "from": "'y'", "day": "2026-02-01", "n": ""},
    ]


def test_on_a_terminal_it_asks_and_asks_again_after_a_wrong_answer(shell: Shell) -> None:
    shell.write("orders.csv", "id,amount\n1,2.5\n")
    with Terminal([*COMMAND, "new", "mine"], shell.directory, shell.environment) as terminal:
        answered = Counter[str]()

        def answer(question: str, text: str) -> None:
            answered[question] += 1
            wait_until(lambda: terminal.text().count(question) >= answered[question], 60, question)
            terminal.type(f"{text}\n".encode())

        answer("Source", "order.csv")
        answer("Source", "orders.csv")
        answer("Target", "")
        answer("Mode", "")
        answer("Schedule", "0 6 * *")
        answer("Schedule", "0 6 * * *")
        wait_until(lambda: terminal.is_closed, 60, "the command ends")
        assert terminal.exit_code() == 0, terminal.text()
        text = terminal.text()
    assert "there is no file or folder order.csv" in text
    assert "it has 4 fields" in text
    assert "orchestrator run mine.yaml" in text
    assert "path 'orders.csv'" in (shell.directory / "mine.sql").read_text()
    assert "cron: 0 6 * * *" in (shell.directory / "mine.yaml").read_text()


def test_without_an_answer_nothing_is_written(shell: Shell) -> None:
    with Terminal([*COMMAND, "new", "mine"], shell.directory, shell.environment) as terminal:
        wait_until(lambda: "Source" in terminal.text(), 60, "the first question")
        terminal.type(b"\x04")  # Ctrl-D
        wait_until(lambda: terminal.is_closed, 60, "the command ends")
        assert terminal.exit_code() == 2
        assert "no answer, nothing was written" in terminal.text()
    assert list(shell.directory.iterdir()) == []


def test_ctrl_c_at_a_question_writes_nothing(shell: Shell) -> None:
    with Terminal([*COMMAND, "new", "mine"], shell.directory, shell.environment) as terminal:
        wait_until(lambda: "Source" in terminal.text(), 60, "the first question")
        terminal.type(b"\x03")
        wait_until(lambda: terminal.is_closed, 60, "the command ends")
        assert terminal.exit_code() == 130
        assert_no_traceback(terminal.text())
    assert list(shell.directory.iterdir()) == []
