"""Entries of running streams in a ring: one for each hour, each once, with what is new in it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.handlers.submit_request import is_short
from orchestrator.history.history import MAX_RUN_BYTES, Ring
from orchestrator.history.hours import MAX_HOURS, StreamTotals, hour_of
from orchestrator.history.key import Key
from orchestrator.history.samples import sample_of
from queues import encode
from spark_runner.protocol.attempt import Attempt
from spark_runner.protocol.sizing import SIZING
from tests.unit.test_history_ring import anything


def hour(number: int, rows: int, run: str = "key-1", **more: Any) -> dict[str, Any]:
    return {
        "run": run,
        "hour": number,
        "state": "running",
        "started": "2026-01-01T00:00:00.000Z",
        "ended": f"2026-01-0{1 + number // 24}T{number % 24:02}:00:00.000Z",
        "total_rows": rows,
        "total_batches": rows // 10,
        **more,
    }


def end(rows: int | None, run: str = "key-1", **more: Any) -> dict[str, Any]:
    totals = {} if rows is None else {"total_rows": rows, "total_batches": rows // 10}
    return {
        "run": run,
        "state": "succeeded",
        "ended": "2026-01-09T00:00:00.000Z",
        "seconds": 5.0,
        **totals,
        **more,
    }


def news(ring: Ring) -> list[tuple[object, object, object]]:
    return [(run.get("hour"), run.get("rows"), run.get("batches")) for run in ring.runs]


def test_an_hour_has_what_was_written_since_the_last_one_and_the_run_has_the_rest() -> None:
    ring = Ring("name")
    for entry in (hour(1, 100), hour(2, 100), hour(5, 170), end(200)):
        ring = ring.with_run(entry)
    assert news(ring) == [(1, 100, 10), (2, 0, 0), (5, 70, 7), (None, 30, 3)]
    assert [run.get("seconds") for run in ring.runs] == [3600, 3600, 3 * 3600, 5.0]
    assert ring.runs[2]["started"] == "2026-01-01T02:00:00.000Z"


def test_an_hour_is_there_once_whoever_records_it_again() -> None:
    ring = Ring("name").with_run(hour(1, 100)).with_run(hour(2, 150))
    assert ring.with_run(hour(2, 190)) is ring
    assert ring.with_run(hour(1, 100)) is ring
    assert (
        ring.with_run(end(190)).with_run(end(190)).with_run(hour(2, 150)).runs == ring.with_run(end(190)).runs
    )


def test_an_hour_of_a_worker_that_is_late_is_not_added_behind_later_ones() -> None:
    ring = Ring("name").with_run(hour(1, 100)).with_run(hour(3, 150))
    assert ring.with_run(hour(2, 120)) is ring


def test_hours_leave_room_for_runs() -> None:
    ring = Ring("name").with_run(end(5, run="key-0", ended="2025-12-31T00:00:00.000Z"))
    for number in range(1, 60):
        ring = ring.with_run(hour(number, number * 10))
    assert [run["run"] for run in ring.runs] == ["key-0", *["key-1"] * MAX_HOURS]
    assert {run["rows"] for run in ring.runs[1:]} == {10}
    assert ring.runs[1]["hour"] == 59 - MAX_HOURS + 1
    assert ring.with_run(hour(1, 10)) is ring, "an hour that was dropped does not come back"


def test_runs_do_not_share_their_hours() -> None:
    ring = Ring("name").with_run(hour(1, 100)).with_run(hour(2, 7, run="key-2"))
    assert news(ring) == [(1, 100, 10), (2, 7, 0)]


def test_a_run_whose_driver_reported_no_totals_has_no_rest() -> None:
    ring = Ring("name").with_run(hour(1, 100)).with_run(end(None))
    assert news(ring)[-1] == (None, None, None)


def test_hours_are_no_runs_that_show_whether_a_job_is_short() -> None:
    short = [{"run": f"key-{number}", "state": "succeeded", "seconds": 1.0} for number in (1, 2)]
    hours = [hour(number, 10, seconds=1.0) for number in range(1, 9)]
    assert not is_short([*short, *hours])
    assert is_short([*short, *hours, {"run": "key-3", "state": "succeeded", "seconds": 1.0}])
    assert is_short(
        [*short, *hours, {"run": "key-3", "state": "succeeded", "seconds": 1.0}, hour(9, 1, seconds=9e9)]
    )


@pytest.mark.parametrize(
    "streamed",
    [
        *(None, 7, [], {}, {"rows": 1}),
        *({"rows": rows, "batches": 1} for rows in (-1, True, 1.5, 2**63, "1", None)),
        {"rows": 1, "batches": -1},
    ],
)
def test_totals_that_no_driver_writes_are_ignored(streamed: object) -> None:
    assert StreamTotals.of({"streamed": streamed}) is None
    assert StreamTotals.of(None) is None


@given(anything, st.integers(0, 2**63 - 1))
def test_an_hour_is_small_whatever_a_driver_has_written(written: Any, rows: int) -> None:
    document = {"state": "started", "started": written, "application_id": written, "filler": "x" * 9_000}
    largest = {"seconds": 2**63 - 1, "driver": dict.fromkeys(map("x".__mul__, range(1, 18)), 2**63 - 1)}
    named = dict.fromkeys(SIZING, "x" * 35)
    for sample in (
        written,
        {"metrics": written, "settings": written},
        {"metrics": largest, "settings": named},
    ):
        check_size(document, rows, sample_of({"sample": sample}))
    assert sample_of({"sample": {"metrics": largest, "settings": named}}).keys() == {"metrics", "settings"}


def check_size(document: dict[str, Any], rows: int, sample: dict[str, Any]) -> None:
    found = hour_of(
        Attempt("/a/attempt-1-key", 1, document),
        3,
        StreamTotals(rows, rows),
        job_id="job",
        sample=sample,
        key=Key("0" * 12, "0" * 8),
    )
    ring = Ring("name").with_run(found)
    assert len(encode(dict(ring.runs[0]))) < MAX_RUN_BYTES
    assert (ring.runs[0]["run"], ring.runs[0]["rows"]) == ("key-1", rows)


def test_a_sample_has_the_numbers_and_settings_of_the_driver_and_nothing_else() -> None:
    numbers = {"heap_live_peak_bytes": 7, "share": 0.5}
    metrics = {
        "input_rows": 3,
        "driver": {**numbers, "name": "x", "on": True, "A B": 1, "huge": 2**70, "none": float("nan")},
        "executors": {"number": 2, "lost_memory": {"heap": 1}},
        "skew": {"ratio": 1.0},
        "words": "x" * 9_000,
    }
    settings = {"spark.driver.memory": "1g", "spark.executor.memory": "x" * 81, "spark.secret": "x"}
    assert sample_of({"sample": {"metrics": metrics, "settings": settings}}) == {
        "metrics": {"input_rows": 3, "driver": numbers, "executors": {"number": 2}},
        "settings": {"spark.driver.memory": "1g"},
    }
    many = {f"x{'y' * number}": number for number in range(39)}
    assert sample_of({"sample": {"metrics": {"driver": many, "executors": many}}}) == {}
    assert sample_of({"sample": []}) == sample_of({}) == sample_of(None) == {}
