"""Log records on stdout: a prefix on each line, and nothing that a terminal or a pipe should not get."""

import io
import sys
from typing import Any

import pytest

from orchestrator.cli.logs.printing import RecordPrinter, text_of
from orchestrator.cli.options import OutputFormat
from orchestrator.logs.reading.query import LogRecord


def record(stream: str = "stdout", message: str = "words", **fields: Any) -> LogRecord:
    return LogRecord("x", {"log.stream": stream, "message": message, "job.id": "a", **fields})


class Stdout(io.TextIOWrapper):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    @property
    def bytes(self) -> bytes:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue()


def printed(
    monkeypatch: pytest.MonkeyPatch, *records: LogRecord, is_terminal: bool = False, **options: bool
) -> bytes:
    stdout = Stdout(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stdout", stdout)
    printer = RecordPrinter(OutputFormat.TABLE, **options)
    for each in records:
        printer.print(each)
    printer.close()
    monkeypatch.undo()
    return stdout.bytes


def test_each_line_has_a_short_aligned_prefix_and_traces_stay_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = record("stderr", "E: no", **{"error.stack_trace": "Traceback\n  line\nE: no\n"})
    event = record("spark", "slow", **{"log.logger": "a.b.C", "log.level": "warning"})
    shown = printed(monkeypatch, record(), trace, event).decode()
    assert shown == "out   | words\nerr   | Traceback\nerr   |   line\nerr   | E: no\nspark |  WARN C: slow\n"


def test_records_of_several_jobs_have_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    own = LogRecord("y", {"message": "moved", "log.level": "info", "log.logger": "w", "job.id": "a"})
    shown = printed(monkeypatch, record(), own, names_job=True).decode()
    assert shown == "a out | words\na orch |  INFO     [a] w: moved\n"


def test_an_executor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed(monkeypatch, record(**{"spark.executor_id": "3"})) == b"out 3 | words\n"
    assert printed(monkeypatch, record(**{"spark.executor_id": "driver"})) == b"out   | words\n"


def test_a_pipe_gets_the_bytes_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"\xff\x1b[31m\x00"
    odd = record(message=data.decode("utf-8", "surrogateescape"))
    assert printed(monkeypatch, odd, prefix=False, is_raw=True) == data + b"\n"
    assert printed(monkeypatch, record(message="\ud800"), prefix=False, is_raw=True) == b"\\ud800\n"


def test_a_terminal_gets_no_command_of_the_program_and_a_coloured_prefix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    odd = record(message=b"\xff\x1b]0;title\x07\x1b[2J".decode("utf-8", "surrogateescape"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = printed(monkeypatch, odd, is_terminal=True).decode()
    assert shown == "\x1b[36mout   |\x1b[0m \\xff\\x1b]0;title\\x07\\x1b[2J\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_the_prefix_has_no_colour_where_none_is_wanted(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    assert printed(monkeypatch, record(), is_terminal=True) == b"out   | words\n"


def test_a_line_in_several_records_is_one_line_unless_another_one_comes_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    more: dict[str, Any] = {"log.part": True}
    part = record(message="long ", **more)
    assert printed(monkeypatch, part, record(message="line")) == b"out   | long line\n"
    between = printed(monkeypatch, part, record("stderr", "x"), record(message="line"))
    assert between == b"out   | long \nerr   | x\nout   | line\n"
    assert printed(monkeypatch, part) == b"out   | long \n"


def test_a_record_of_the_orchestrator_has_the_job_and_the_trace_below_it() -> None:
    made = LogRecord(
        "z",
        {
            "@timestamp": "2026-03-01T10:11:12.123456Z",
            "log.level": "error",
            "log.logger": "a.b",
            "message": "no",
            "job.id": "j",
            "error.stack_trace": "T\n",
        },
    )
    first, second = text_of(made).split("\n")
    assert first.endswith("12.123 ERROR    [j] a.b: no")
    assert second == "T"
