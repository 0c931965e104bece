"""Spark's own log: what a line says, and how people read it."""

import json
from typing import Any

import pytest

from spark_runner.spark_log import readable_lines, spark_event


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
def test_what_is_no_event_is_shown_as_it_is(other: bytes) -> None:
    assert spark_event(other) is None
    assert readable_lines(other) == other


def test_people_read_a_line_and_the_trace_below_it() -> None:
    text = readable_lines(line(message="bad", **{"error.stack_trace": "a.B: c\n\tat d\n"}) + b"no end")
    time, rest = text.decode().split(" ", 1)
    assert time.startswith("2026-0")
    assert rest == "WARN Executor: bad\na.B: c\n\tat d\nno end"
