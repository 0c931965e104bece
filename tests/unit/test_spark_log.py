"""Spark's own log: the fields of a line, and its display."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.job.log_files import Tail
from spark_runner.runners.base import LogFile
from spark_runner.runners.spark_log import readable_lines, spark_event


def line(**fields: Any) -> bytes:
    event = {
        "@timestamp": "2026-03-01T10:11:12.123456Z",
        "log.level": "WARN",
        "log.logger": "org.apache.spark.executor.Executor",
        "process.thread.name": "main",
        "message": "two\nlines",
    }
    return json.dumps(event | fields, separators=(",", ":")).encode() + b"\n"


def test_an_event_is_read_with_its_task() -> None:
    event = spark_event(line(task="task 3.1 in stage 7.0 (TID 42)"))
    assert event is not None
    assert (event.level, event.message, event.stage, event.task) == ("WARN", "two\nlines", 7, 42)
    thread = "Executor task launch worker for task 0.0 in stage 1.0 (TID 5)"
    event = spark_event(line(**{"process.thread.name": thread}))
    assert event is not None
    assert (event.stage, event.task) == (1, 5)


@pytest.mark.parametrize(
    "other", [b"", b"{}\n", b"26/03/01 INFO X: y\n", line()[:-5], b'{"@timestamp":"x"}\n']
)
def test_a_line_that_is_no_event_is_shown_unchanged(other: bytes) -> None:
    assert spark_event(other) is None
    assert readable_lines(other) == other


@pytest.mark.parametrize("before", ["", " "])  # log4j writes a space in Spark 4.0 and 4.1
def test_people_read_a_line_and_the_trace_below_it(before: str) -> None:
    trace = f"{before}a.B: c\n\tat d\n"
    text = readable_lines(line(message="bad", **{"error.stack_trace": trace}) + b"no end")
    time, rest = text.decode().split(" ", 1)
    assert time.startswith("2026-0")
    assert rest == "WARN Executor: bad\na.B: c\n\tat d\nno end"


def test_a_follower_of_a_log_reads_whole_lines_and_finally_the_rest(tmp_path: Path) -> None:
    log = LogFile("inc", "spark", tmp_path / "spark.log")
    with ExitStack() as stack, log.path.open("ab", buffering=0) as file:
        tail = Tail(stack, log)
        file.write(line(message="one")[:30])
        assert b"".join(tail.chunks()) == b""
        file.write(line(message="one")[30:] + line(message="two") + b"killed in the mid")
        shown = b"".join(tail.chunks()).splitlines()
        assert [text.rpartition(b" ")[2] for text in shown] == [b"one", b"two"]
        assert tail.rest() == b"killed in the mid"
        assert tail.rest() == b""


@pytest.mark.parametrize("is_mixed", [True, False])
def test_events_in_the_log_of_a_pod_are_shown_as_lines_and_what_a_program_prints_as_it_is(
    tmp_path: Path, is_mixed: bool
) -> None:
    log = LogFile("inc", "stdout", tmp_path / "stdout.log", is_mixed=is_mixed)
    log.path.write_bytes(b"printed\n" + line(message="one"))
    with ExitStack() as stack:
        shown = b"".join(Tail(stack, log).chunks())
    assert shown.startswith(b"printed\n")
    assert shown.endswith(b"WARN Executor: one\n" if is_mixed else line(message="one"))


@given(
    st.binary(max_size=60)
    | st.sampled_from([b"[" * 90_000, b"9" * 5_000, b"\xed\xa0\x80", b"9999-12-31T23:59"])
)
def test_no_line_keeps_the_others_from_being_read(odd: bytes) -> None:
    begun = b'{"@timestamp":"' + odd
    for words in (odd, begun, begun + b'"}', line(**{"@timestamp": odd.decode("utf-8", "surrogateescape")})):
        bad = words.replace(b"\n", b"").replace(b"\r", b"") + b"\n"
        assert readable_lines(bad + line(message="behind it")).endswith(b"Executor: behind it\n")


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-31T00:00:00"]
)
def test_no_time_keeps_a_line_from_being_read(time: str) -> None:
    assert b"two" in readable_lines(line(**{"@timestamp": time}))
