"""`run` shows all that a program prints, waits for its end while more comes, and says what is missing."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.cli import program_output
from orchestrator.cli.live import display
from orchestrator.cli.logs.printing import RecordPrinter
from orchestrator.cli.program_output import ProgramOutput
from orchestrator.logs.reading.query import LogRecord
from orchestrator.model.errors import NoSuchAttempt
from spark_runner.protocol.errors import EXCEPTION_LINE

_SOON_S = 20


def line(number: int, stream: str = "stdout") -> LogRecord:
    document: dict[str, Any] = {
        "message": f"line {number}",
        "log.stream": stream,
        "event.dataset": "spark.driver",
        "job.id": "a",
    }
    return LogRecord(f"id-{number}", document)


def shown(records: Iterator[LogRecord], *, interrupted: bool = False) -> ProgramOutput:
    output = ProgramOutput(records, display(quiet=True), "a")
    output.finish(lambda: interrupted)
    return output


def test_a_log_that_takes_longer_than_the_patience_is_shown_whole(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_output, "_LATE_SECONDS", 1.0)
    pause = threading.Event()

    def slow() -> Iterator[LogRecord]:
        for number in range(15):
            pause.wait(0.1)  # each comes within the patience, all of them do not
            yield line(number)

    shown(slow())
    out, err = capfd.readouterr()
    assert out.splitlines() == [f"line {number}" for number in range(15)]
    assert "not all output" not in err


def test_a_log_without_an_end_is_given_up_and_named_even_when_quiet(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_output, "_LATE_SECONDS", 0.2)
    ended = threading.Event()

    def endless() -> Iterator[LogRecord]:
        yield line(0)
        ended.wait(_SOON_S)
        yield line(1)

    shown(endless())
    ended.set()
    out, err = capfd.readouterr()
    assert out == "line 0\n"
    assert "not all output is shown" in err
    assert "orchestrator job logs a" in err


def test_ctrl_c_ends_the_wait_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    ended = threading.Event()

    def endless() -> Iterator[LogRecord]:
        ended.wait(_SOON_S)
        yield line(0)

    shown(endless(), interrupted=True)
    ended.set()
    assert "not all output is shown: interrupted" in capfd.readouterr().err


@pytest.mark.parametrize("error", [OSError("disk"), ValueError("odd"), PermissionError("log")])
def test_a_log_that_cannot_be_read_fails_no_job(error: Exception, capfd: pytest.CaptureFixture[str]) -> None:
    def broken() -> Iterator[LogRecord]:
        yield line(0)
        raise error

    shown(broken())
    out, err = capfd.readouterr()
    assert out == "line 0\n"
    assert f"not all output is shown: {error}" in err


@pytest.mark.parametrize(
    "trace",
    [
        EXCEPTION_LINE,
        'Traceback (most recent call last):\n  File "/lib/spark_runner/driver/driver.py", line 120, in _run',
    ],
    ids=["this version", "an earlier one"],
)
def test_what_the_driver_and_pyspark_say_about_an_error_is_left_out(
    trace: str, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = [
        (1, "of the program"),
        (1, '{"ts": "2026-01-01", "level": "ERROR", "logger": "SQLQueryContextLogger", "msg": "no table"}'),
        (1, "Traceback (most recent call last):\n  File \"job.py\", line 1, in f\nKeyError: 'own'"),
        (1, trace),
        (1, "the rest of its message"),
        (2, "of the next attempt"),
    ]
    records = [
        LogRecord(f"{number}", {**line(0, "stderr").document, "message": text, "job.attempt": attempt})
        for number, (attempt, text) in enumerate(texts)
    ]
    ProgramOutput(iter(records), display(quiet=False), "a").finish(lambda: False)
    shown_lines = capfd.readouterr().err.splitlines()
    assert shown_lines == [
        "of the program",
        "Traceback (most recent call last):",
        '  File "job.py", line 1, in f',
        "KeyError: 'own'",
        "of the next attempt",
    ]


def test_a_job_that_ended_before_its_first_attempt_has_printed_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def none() -> Iterator[LogRecord]:
        yield from ()
        raise NoSuchAttempt("job 'a' has no logs: it has not been started")

    shown(none())
    assert capfd.readouterr() == ("", "")


def test_a_closed_stdout_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(RecordPrinter, "print", refuse)
    with pytest.raises(BrokenPipeError):
        shown(iter([line(0), line(1)]))


def test_after_a_stop_no_further_line_comes(capfd: pytest.CaptureFixture[str]) -> None:
    more = threading.Event()

    def late() -> Iterator[LogRecord]:
        yield line(0)
        assert more.wait(_SOON_S)
        yield line(1)

    output = ProgramOutput(late(), display(quiet=True), "a")
    output.stop()
    more.set()
    output._thread.join(_SOON_S)  # noqa: SLF001 - it has to end by itself
    assert "line 1" not in capfd.readouterr().out
