"""From a log call to a document: JSON of bounded size, in the index of its own day, whatever is logged."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from loguru import logger

from orchestrator.logs.pipeline import is_shippable
from orchestrator.logs.record.document import Days, DocumentBuilder
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.record.text import MAX_FIELD, MAX_MESSAGE, MAX_TRACE, encoded
from orchestrator.logs.spool.segments import MAX_RECORD_BYTES

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",  # midnight comes twice
    "Africa/Cairo",  # midnight is left out, and the hour before it comes twice
    "Asia/Kathmandu",
    "Pacific/Apia",  # a whole day was left out
    "Australia/Lord_Howe",  # half an hour of summer time
]


class Taken:
    """The logged records as documents."""

    def __init__(self) -> None:
        self.indices, self.raw = list[str](), list[bytes]()
        self.builder = DocumentBuilder(Days("logs"), Redactor(["hidden-word"]), "test")

    def __call__(self, message: Any) -> None:
        index, text = self.builder.build(message.record)
        self.indices.append(index)
        self.raw.append(encoded(text))

    @property
    def last(self) -> dict[str, Any]:
        found = json.loads(self.raw[-1])
        assert isinstance(found, dict)
        return found


@pytest.fixture
def taken() -> Iterator[Taken]:
    sink = Taken()
    handler = logger.add(sink, level=0, format="{message}", catch=False, filter=is_shippable)
    yield sink
    logger.remove(handler)


class Silent:
    def __str__(self) -> str:
        raise RuntimeError("not shown")


@given(st.text(), st.text(), st.text())
@example("\ud800", "\udfff\x00", "\u2028")
def test_any_text_becomes_json(message: str, name: str, value: str) -> None:
    sink = Taken()
    handler = logger.add(sink, format="{message}", catch=False)
    try:
        logger.bind(**{name: value}).info("{}", message)
    finally:
        logger.remove(handler)
    assert b"\n" not in sink.raw[-1]
    assert sink.last["message"] == message.encode("utf-8", "replace").decode()


@pytest.mark.parametrize(
    "value",
    [
        Silent(),
        float("nan"),
        10**400,
        b"\xff",
        {"a": Silent()},
        [Silent()],
        object,
        None,
        True,
        {1: 2},
        2**63,
    ],
)
def test_extras_of_any_kind_are_kept_as_text(taken: Taken, value: Any) -> None:
    logger.bind(thing=value).info("hello")
    assert isinstance(taken.last["labels"]["thing"], str)


def test_an_extra_that_cannot_be_shown_says_what_it_was(taken: Taken) -> None:
    logger.bind(thing=Silent(), job_id=Silent()).info("hello")
    shown = "<Silent that cannot be shown: RuntimeError>"
    assert (taken.last["labels"]["thing"], taken.last["job.id"]) == (shown, shown)


def test_a_record_bound_to_a_job_has_the_fields_of_the_job(taken: Taken) -> None:
    logger.bind(job_id="j", run_key="r", attempt=2, pool="p", fields={"event.kind": "x", "n": 1}).info(
        "hello"
    )
    found = taken.last
    expected = {
        "job.id": "j",
        "job.run_key": "r",
        "job.attempt": 2,
        "job.pool": "p",
        "event.kind": "x",
        "n": 1,
    }
    assert {name: found[name] for name in expected} == expected
    assert "labels" not in found


@pytest.mark.parametrize("text", ["x", "\x00", "😀", '"'])
def test_sizes_are_cut_with_a_mark(taken: Taken, text: str) -> None:
    def fail() -> None:
        raise ValueError(text * 200_000)

    extras = {f"n{number}": text * 5_000 for number in range(100)}
    try:
        fail()
    except ValueError:
        logger.bind(**extras).exception(text * 200_000)
    found = taken.last
    mark = f"… [{200_000 - MAX_MESSAGE:,} more characters]"
    assert found["message"] == text * MAX_MESSAGE + mark
    assert found["error.message"].endswith(mark)
    assert found["error.stack_trace"].endswith("more characters]")
    assert len(found["error.stack_trace"]) < MAX_TRACE + 50
    assert len(found["labels"]) == 50
    assert all(len(value) < MAX_FIELD + 50 for value in found["labels"].values())
    assert len(taken.raw[-1]) < MAX_RECORD_BYTES


def test_an_exception_is_shown_with_its_cause_and_without_secrets(taken: Taken) -> None:
    def fail() -> None:
        try:
            int("password=hunter2")
        except ValueError as error:
            raise RuntimeError("the hidden-word is out") from error

    try:
        fail()
    except RuntimeError:
        logger.opt(exception=True).error("it failed: token=abcdef")
    text = taken.raw[-1].decode()
    assert all(secret not in text for secret in ("hunter2", "hidden-word", "abcdef"))
    assert taken.last["error.type"] == "RuntimeError"
    assert "ValueError" in taken.last["error.stack_trace"]
    assert "in fail" in taken.last["error.stack_trace"]


def test_exception_groups_and_exceptions_that_cannot_be_formatted_are_shown(taken: Taken) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not shown")

    for error in (ExceptionGroup("several", [ValueError("a"), Odd()]), Odd()):
        logger.opt(exception=error).error("failed")
        assert taken.last["error.type"] == type(error).__name__
    logger.exception("there is none")
    assert "error.type" not in taken.last


def test_secrets_in_extras_are_masked_by_the_name_of_the_extra(taken: Taken) -> None:
    logger.bind(password="hunter2", url="https://me:hunter2@host/").info("hello hidden-word")  # noqa: S106 - made up
    assert b"hunter2" not in taken.raw[-1]
    assert b"hidden-word" not in taken.raw[-1]


def test_secrets_are_masked_in_whatever_depth_of_a_field_they_stand(taken: Taken) -> None:
    state = {"error": {"message": "it failed with hidden-word"}, "tried": ["password=s3cret-word"]}
    logger.bind(fields={"job.state": state}).info("x")
    assert taken.last["job.state"] == {"error": {"message": "it failed with ***"}, "tried": ["password=***"]}


def test_records_of_the_shipper_itself_are_not_shipped(taken: Taken) -> None:
    for name in ("elastic_transport.node", "urllib3.connectionpool", "elasticsearch"):
        logger.patch(lambda record, name=name: record.update(name=name)).info("x")  # type: ignore[misc]
    assert taken.raw == []


# ---------------------------------------------------------------------- time
@pytest.mark.parametrize("zone", ZONES)
@given(start=st.floats(0, 4e9), steps=st.lists(st.floats(-200_000, 200_000), max_size=30))
def test_the_day_is_that_of_the_zone_wherever_the_clock_jumps(
    zone: str, start: float, steps: list[float]
) -> None:
    days, tz, epoch = Days("logs", zone), ZoneInfo(zone), start
    for step in steps:
        epoch = max(0.0, epoch + step)
        assert days.index(epoch) == f"logs-{datetime.fromtimestamp(epoch, tz):%Y-%m-%d}"


@pytest.mark.parametrize("zone", ZONES)
def test_days_are_right_to_the_second_around_every_change_of_the_clock(zone: str) -> None:
    days, tz = Days("logs", zone), ZoneInfo(zone)
    for year in (2011, 2012, 2023, 2024, 2026):
        moment = datetime(year, 1, 1, tzinfo=UTC)
        before = moment.astimezone(tz).utcoffset()
        for hour in range(366 * 24):
            at = moment + timedelta(hours=hour)
            offset = at.astimezone(tz).utcoffset()
            if offset != before:
                before = offset
                for second in range(-90_000, 90_000, 1_799):
                    epoch = at.timestamp() + second
                    assert days.index(epoch) == f"logs-{datetime.fromtimestamp(epoch, tz):%Y-%m-%d}"


@given(st.lists(st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)), max_size=20))  # noqa: DTZ001 - given a zone below
def test_times_are_written_in_utc_to_the_microsecond(moments: list[datetime]) -> None:
    days = Days("logs", "Asia/Kathmandu")
    for naive in moments:
        moment = naive.replace(tzinfo=UTC)
        parsed = datetime.fromisoformat(days.timestamp(moment.timestamp()))
        assert abs(parsed - moment) <= timedelta(microseconds=1)
        assert days.timestamp(moment.timestamp()).endswith("Z")


def test_the_index_and_the_time_are_those_of_the_record(taken: Taken) -> None:
    late = datetime(2025, 12, 31, 23, 59, 59, 999999, tzinfo=ZoneInfo("America/New_York"))
    logger.patch(lambda record: record.update({"time": late})).info("x")
    assert taken.indices == ["logs-2026-01-01"]
    assert taken.last["@timestamp"] == "2026-01-01T04:59:59.999999Z"
