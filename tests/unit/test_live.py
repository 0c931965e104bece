"""The live view of a job on a terminal, and its plain lines in a pipe."""

import io
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.admin.job_monitor import JobSnapshot
from orchestrator.cli.grid import width
from orchestrator.cli.live import Display, LiveDisplay, display
from orchestrator.cli.output import stderr_console
from orchestrator.cli.plain import PlainDisplay
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue, Status
from orchestrator.model.waiting import Reason, Waiting

NOW = datetime.now(UTC)
PAUSED = Waiting(reason=Reason.PAUSED, message="pool p is paused; `orchestrator queue resume p` ends that")
FAILED: dict[str, Any] = {
    "attempt": 1,
    "state": "failed",
    "error": {"message": "\nno table \x1b[2J of " + "rates " * 30 + "\n11 | CREATE TABLE rates (\n   | ^"},
}
PROGRESS = {
    "phase": "INSERT OVERWRITE totals_by_carrier_and_hour (2 of 5)",
    "stages": [{"stage": 3, "tasks": 8, "done": 5}],
    "read": {"rows": 1_234},
}


def at(seconds_ago: float) -> str:
    return (NOW - timedelta(seconds=seconds_ago)).isoformat()


def job(queue: Queue, status: Status, attempt: int = 1, **times: float) -> JobView:
    return JobView(
        id="j",
        run_key="k",
        name="j",
        pool="p",
        queue=queue,
        status=status,
        attempt=attempt,
        created=at(60),
        updated=at(1),
        started=None,
        ended=None,
        error=None,
        times={name: at(seconds) for name, seconds in times.items()},
    )


WAITS = JobSnapshot(job(Queue.ACCEPT, Status.ACCEPT, 0, accept=30), waiting=PAUSED)
# How long ago these are depends on when a test comes in the run.
RUNS = JobSnapshot(job(Queue.RUNNING, Status.RUNNING, accept=30, running=20), PROGRESS)
RETRIED = JobSnapshot(
    job(Queue.RUNNING, Status.RUNNING, 2, running=20, fail=35, accept=30), PROGRESS, failed=[FAILED]
)
ENDED = JobSnapshot(job(Queue.FINISH, Status.ERROR_FAIL, accept=30, running=20, fail=5, finish=4))


class OneTerminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def live(monkeypatch: pytest.MonkeyPatch, columns: int, lines: int = 24) -> tuple[LiveDisplay, OneTerminal]:
    terminal = OneTerminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    for name, value in {"TERM": "xterm", "COLUMNS": columns, "LINES": lines}.items():
        monkeypatch.setenv(name, str(value))
    made = display(quiet=False)
    assert isinstance(made, LiveDisplay)
    return made, terminal


def last_lines(monkeypatch: pytest.MonkeyPatch, columns: int, *shown: JobSnapshot, **size: int) -> list[str]:
    """What stays on the terminal after these states."""
    screen, terminal = live(monkeypatch, columns, **size)
    with screen:
        for now in shown:
            screen.show(now)
    last = terminal.getvalue().rpartition("\x1b[2K")[2]
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last).splitlines()


def test_a_state_has_its_time_statement_stage_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    done, now = last_lines(monkeypatch, 130, RUNS)
    assert done == "✓ accept         10.0 s"
    assert re.fullmatch(
        r". running +[\d.]+ (s|min \d\d s|h \d\d min)  "
        r"INSERT OVERWRITE totals_by_carrier_and_hour \(2 of 5\) · stage 3: 5/8 tasks · 1,234 rows read",
        now,
    )


def test_an_activity_that_does_not_fit_stands_below_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    _, now, *below = last_lines(monkeypatch, 60, RUNS)
    assert re.fullmatch(r". running +[\d.]+ (s|min \d\d s|h \d\d min)", now)
    assert below == [
        "    INSERT OVERWRITE totals_by_carrier_and_hour (2 of 5) ·",
        "    stage 3: 5/8 tasks · 1,234 rows read",
    ]


def test_a_failed_attempt_and_its_error_stay_while_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    failed, accept, running, *_ = last_lines(monkeypatch, 60, RETRIED)
    assert failed.startswith("✗ attempt 1              no table \\x1b[2J of rates rates")
    assert failed.endswith("…")
    assert accept.startswith("✓ accept ")
    assert "running" in running


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("now", [WAITS, RUNS, RETRIED, ENDED], ids=["waits", "runs", "retried", "ended"])
def test_no_line_is_folded_by_the_terminal(
    columns: int, now: JobSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = last_lines(monkeypatch, columns, now)
    assert all(width(line) <= columns for line in lines)
    assert lines


def test_what_a_job_waits_for_is_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    _, *below = last_lines(monkeypatch, 60, WAITS)
    assert " ".join(" ".join(below).split()) == f"waits: {PAUSED.message}"


def test_the_next_attempt_begins_without_the_driver_of_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = replace(RETRIED, progress=None)
    shown = last_lines(monkeypatch, 130, RUNS, replace(RUNS, progress=None), WAITS, begun)
    assert shown[-1].endswith("spark-submit is starting the driver")
    shown = last_lines(monkeypatch, 130, RUNS, RETRIED, begun)
    assert shown[-1].endswith("the driver is shutting down")


def test_a_low_terminal_shows_the_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = last_lines(monkeypatch, 130, RETRIED, lines=3)
    assert len(lines) == 2
    assert "running" in lines[-1]


def test_an_outage_is_shown_until_the_next_state(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, terminal = live(monkeypatch, 80)
    with screen:
        screen.show(RUNS)
        screen.show_outage(12.0)
    assert "ZooKeeper has not answered for 12." in terminal.getvalue()
    assert "no answer" not in "".join(last_lines(monkeypatch, 80, RUNS))


def test_the_cursor_is_never_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, terminal = live(monkeypatch, 80)

    def interrupted() -> None:
        with screen:
            screen.show(RUNS)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "\x1b[?25" not in terminal.getvalue()
    assert terminal.getvalue().endswith("\n")


@pytest.mark.parametrize("variable", [{"TERM": "dumb"}, {"TERM": "unknown"}])
def test_a_dumb_terminal_gets_plain_lines(variable: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", OneTerminal())
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    assert isinstance(display(quiet=False), PlainDisplay)


def plain(capsys: pytest.CaptureFixture[str], show: Any) -> list[str]:
    screen: Display = PlainDisplay(stderr_console())
    with screen:
        show(screen)
    return [re.sub(r"^ *\d+\.\d s  ", "", line) for line in capsys.readouterr().err.splitlines()]


def test_a_pipe_gets_one_line_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    def show(screen: Display) -> None:
        for now in (WAITS, WAITS, RUNS, RUNS, RETRIED, RETRIED, ENDED):
            screen.show(now)

    lines = plain(capsys, show)
    assert lines[:4] == [
        "accept   ACCEPT",
        f"         waits: {PAUSED.message}",
        "running  RUNNING",
        "         INSERT OVERWRITE totals_by_carrier_and_hour (2 of 5)",
    ]
    assert lines[4].startswith("         attempt 1 has ended: no table \\x1b[2J of rates")
    assert lines[4].endswith(" rates")
    assert lines[5] == lines[3], "the next attempt does the same again"
    assert lines[-1] == "finish   ERROR_FAIL"


def test_a_reason_whose_words_change_is_printed_once_and_each_next_try_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def waits(reason: Reason, words: str, until: str = "") -> JobSnapshot:
        return JobSnapshot(WAITS.job, waiting=Waiting(reason=reason, message=words, until=until))

    def show(screen: Display) -> None:
        for now in (
            waits(Reason.SLOTS, "deferred at 1"),
            waits(Reason.SLOTS, "deferred at 2"),
            waits(Reason.BACKOFF, "next at 3", "3"),
            waits(Reason.BACKOFF, "next at 3", "3"),
            waits(Reason.BACKOFF, "next at 4", "4"),
            waits(Reason.TURN, "it is due"),
        ):
            screen.show(now)

    lines = [line.strip() for line in plain(capsys, show)]
    assert lines[1:] == ["waits: deferred at 1", "waits: next at 3", "waits: next at 4"]


def test_a_wait_does_not_repeat_the_error_of_the_attempt_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("orchestrator.cli.plain.time.monotonic", lambda: clock[0])
    message = " ".join(FAILED["error"]["message"].split())
    words = f"attempt 1 has ended; the next may start at 12:00:00: {message}"
    waiting = Waiting(reason=Reason.BACKOFF, message=words, until="12:00:00")
    now = JobSnapshot(job(Queue.ACCEPT, Status.ACCEPT, 1, accept=30), failed=[FAILED], waiting=waiting)

    def show(screen: Display) -> None:
        for seconds in (0, 29, 31, 62):
            clock[0] = seconds
            screen.show(now)

    attempt, _, wait, *still = [line.strip() for line in plain(capsys, show)]
    assert attempt.startswith("attempt 1 has ended: no table ")
    assert wait == "waits: attempt 1 has ended; the next may start at 12:00:00"
    assert len(still) == 2
    assert all(re.fullmatch(r"still waiting after .+", line) for line in still)


def test_a_job_that_has_ended_shows_when_its_states_came(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainDisplay(stderr_console()) as screen:
        screen.show(ENDED)
    assert capsys.readouterr().err.splitlines() == [
        "   0.0 s  accept",
        "  10.0 s  running",
        "  25.0 s  fail",
        "  26.0 s  finish   ERROR_FAIL",
    ]


def test_an_outage_and_its_end_are_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    def show(screen: Display) -> None:
        screen.show(RUNS)
        screen.show_outage(0.5)
        screen.show_outage(9.0)
        screen.show(RUNS)

    assert [line.strip() for line in plain(capsys, show)][-2:] == [
        "ZooKeeper has not answered for 0.5 s; the wait goes on",
        "ZooKeeper answers again",
    ]


def test_a_pipe_is_never_silent_for_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("orchestrator.cli.plain.time.monotonic", lambda: clock[0])

    def show(screen: Display) -> None:
        for seconds, now in (
            (0, RUNS),
            (29, RUNS),
            (30, RUNS),
            (59, RUNS),
            (60, WAITS),
            (91, ENDED),
            (200, ENDED),
        ):
            clock[0] = seconds
            screen.show(now)

    activity = "INSERT OVERWRITE totals_by_carrier_and_hour (2 of 5) · stage 3: 5/8 tasks · 1,234 rows read"
    lines = [line.strip() for line in plain(capsys, show)]
    assert lines[2:4] == [activity.partition(" · ")[0], f"still running: {activity}"]
    assert [line for line in lines if "still running" in line] == [f"still running: {activity}"]
    assert lines[-1] == "finish   ERROR_FAIL"
