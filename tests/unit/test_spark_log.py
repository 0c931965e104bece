"""Spark's own log: the fields of an event, and events in lines that others have written or cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_runner.runners.spark_log import SparkEvent, level_of_event, pieces, spark_event


def line(**fields: Any) -> bytes:
    event = {
        "@timestamp": "2026-03-01T10:11:12.123456Z",
        "log.level": "WARN",
        "log.logger": "org.apache.spark.executor.Executor",
        "process.thread.name": "main",
        "message": "two\nlines",
    }
    return json.dumps(event | fields, separators=(",", ":")).encode() + b"\n"


def found_in(text: bytes) -> list[str | bytes]:
    """The messages of the events in a line, and the text around them."""
    return [piece.message if isinstance(piece, SparkEvent) else piece for _, piece in pieces(text)]


def test_an_event_is_read_with_its_task() -> None:
    event = spark_event(line(task="task 3.1 in stage 7.0 (TID 42)"))
    assert event is not None
    assert (event.level, event.message, event.stage, event.task) == ("WARN", "two\nlines", 7, 42)
    thread = "Executor task launch worker for task 0.0 in stage 1.0 (TID 5)"
    event = spark_event(line(**{"process.thread.name": thread}))
    assert event is not None
    assert (event.stage, event.task) == (1, 5)


OTHERS = [b"{}\n", b"26/03/01 INFO X: y\n", b'{"@timestamp":"x"}\n']
ECS = [
    b'{"@timestamp":"2026-03-01T10:11:12.123Z","log.level":"info","message":"of a program"}\n',
    b'{"@timestamp":"2026-03-01T10:11:12.123Z","log.level":"info","message":"that is cut\n',
]


@pytest.mark.parametrize("other", [*OTHERS, *ECS])
def test_a_line_that_is_no_event_is_text_also_if_a_program_logs_json(other: bytes) -> None:
    assert spark_event(other) is None
    assert found_in(other) == [other]
    assert not level_of_event(other)


def test_the_level_of_an_event_is_read_without_the_rest() -> None:
    assert level_of_event(line()[:120]) == "WARN"


@pytest.mark.parametrize("before", ["", " "])  # log4j writes a space in Spark 4.0 and 4.1
def test_an_event_has_its_trace(before: str) -> None:
    event = spark_event(line(message="bad", **{"error.stack_trace": f"{before}a.B: c\n\tat d\n"}))
    assert event is not None
    assert (event.message, event.trace) == ("bad", "a.B: c\n\tat d\n")


def test_events_and_text_that_share_a_line_are_told_apart() -> None:
    one, two = line(message="one").strip(), line(message="two").strip()
    assert found_in(b"printed " + one + two + b" behind\n") == [b"printed ", "one", "two", b" behind\n"]
    assert found_in(one + b"\n") == ["one"]


@pytest.mark.parametrize("size", range(4, len(line()) - 2))
def test_no_part_of_an_event_is_text_wherever_it_is_cut(size: int) -> None:
    begun = line(message='with "quotes" and \u00e9')[:size]
    for text in (begun, b"printed" + begun):
        assert b'{"@t' not in b"".join(each for each in found_in(text) if isinstance(each, bytes))
    events = [piece for _, piece in pieces(begun) if isinstance(piece, SparkEvent)]
    assert all(event.is_cut for event in events)


def test_an_event_that_is_cut_has_what_is_left() -> None:
    ((_, event),) = pieces(line(message='a "long" message')[:-8])
    assert isinstance(event, SparkEvent)
    assert (event.level, event.logger, event.message) == (
        "WARN",
        "org.apache.spark.executor.Executor",
        'a "long" me',
    )


@given(
    st.binary(max_size=60)
    | st.sampled_from([b"[" * 90_000, b"9" * 5_000, b"\xed\xa0\x80", b"9999-12-31T23:59"])
)
def test_no_line_keeps_the_others_from_being_read(odd: bytes) -> None:
    begun = b'{"@timestamp":"' + odd
    for words in (odd, begun, begun + b'"}', line(**{"@timestamp": odd.decode("utf-8", "surrogateescape")})):
        bad = words.replace(b"\n", b"").replace(b"\r", b"")
        assert found_in(bad + line(message="behind it"))[-1] == "behind it"
        positions = [at for at, _ in pieces(bad)]
        assert positions == sorted(set(positions))


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-31T00:00:00"]
)
def test_no_time_keeps_a_line_from_being_read(time: str) -> None:
    text = line(**{"@timestamp": time})
    assert found_in(text) in (["two\nlines"], [text])


class Counted(bytes):
    """Counts the bytes that are copied out of it."""

    copied = 0

    def __getitem__(self, part: Any) -> Any:
        found = super().__getitem__(part)
        self.copied += len(found) if isinstance(found, bytes) else 1
        return found


@pytest.mark.parametrize("part", [b'{"@timestamp":"', b'{"@timestamp":"\xff', b'{"@timestamp":"x","a":[[['])
def test_a_line_of_many_beginnings_of_events_is_read_once(part: bytes) -> None:
    odd = Counted(part * 1_000)
    for _ in pieces(odd):
        pass
    assert odd.copied <= 3 * len(odd)
