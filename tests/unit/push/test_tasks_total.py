"""The numbers of all tasks of a push, from reports that are not trusted."""

from typing import Any

import pytest

from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.server import TaskState
from spark_runner.push.monitor import OTHERS
from spark_runner.push.settings import Limits
from spark_runner.push.tasks_total import TasksTotal

LIMITS = Limits(buffer_records=100)
FIRST, SECOND = TaskId(0, 10), TaskId(1, 11)


def report(lane: str = "a", **given: Any) -> dict[str, Any]:
    counts = {"read": 10, "delivered": 7, "dead": 1, **given.pop("counts", {})}
    return {"lanes": {lane: counts}, "latencies": {"10": 5}, "in_flight": 2, "is_full": True, **given}


def test_running_and_ended_tasks_add_up_and_gauges_are_those_of_running_ones() -> None:
    total = TasksTotal(0.0)
    total.add([], {FIRST: TaskState(report()), SECOND: TaskState(report("b"), is_stale=True)}, 1.0)
    found = total.document(LIMITS, 1.0)
    assert (found["read"], found["delivered"], found["dead"]) == (20, 14, 2)
    assert (found["tasks"], found["stale"], found["stopped"], found["in_flight"]) == (2, 1, 2, 4)

    total.add([(FIRST, report(counts={"delivered": 9}))], {SECOND: TaskState(report("b"))}, 2.0)
    found = total.document(LIMITS, 2.0)
    assert (found["read"], found["delivered"]) == (20, 16)
    assert (found["tasks"], found["in_flight"]) == (1, 2)
    assert found["lanes"]["a"]["delivered"] == 9
    total.add([], {}, 3.0)
    assert total.document(LIMITS, 3.0)["delivered"] == 9, "the second one has ended without a word"


def test_speeds_are_those_of_the_last_minutes_and_latencies_those_of_all_requests() -> None:
    total = TasksTotal(0.0)
    for second in range(1, 401):
        counts = {"read": 100 * second, "delivered": 50 * second, "dead": 0}
        total.add([], {FIRST: TaskState(report(counts=counts))}, float(second))
    found = total.document(LIMITS, 400.0)
    assert found["speed_in"] == {"10": 100.0, "60": 100.0, "300": 100.0}
    assert found["speed_out"] == {"10": 50.0, "60": 50.0, "300": 50.0}
    assert 0.0002 < found["p50"] == found["p99"] <= 0.0003
    assert found["delay"] == 399.0
    assert total.document(LIMITS, 1000.0)["speed_in"] == {"10": 0.0, "60": 0.0, "300": 0.0}


def test_each_lane_has_the_speed_of_the_last_seconds() -> None:
    total = TasksTotal(0.0)
    for second in range(1, 41):
        lanes = {
            "quick": {"read": 60 * second, "delivered": 50 * second},
            "slow": {"delivered": 2 * min(second, 25), "dead": second},
        }
        total.add([], {FIRST: TaskState({"lanes": lanes})}, float(second))
    found = total.document(LIMITS, 40.0)["lanes"]
    assert (found["quick"]["speed"], found["slow"]["speed"]) == (50.0, 1.0)
    assert total.document(LIMITS, 55.0)["lanes"]["quick"]["speed"] == 0.0
    together = total.document(LIMITS, 40.0, most=0)["lanes"]
    assert {name: each["speed"] for name, each in together.items()} == {OTHERS: 51.0}


def test_of_many_lanes_those_with_the_most_records_are_named() -> None:
    total = TasksTotal(0.0)
    lanes = {f"lane-{number}": {"read": number, "delivered": 1} for number in range(80)}
    total.add([], {FIRST: TaskState({"lanes": lanes})}, 1.0)
    found = total.document(LIMITS, 1.0)["lanes"]
    assert len(found) == 51
    assert found[OTHERS]["read"] == sum(range(30))
    assert total.document(LIMITS, 1.0)["read"] == sum(range(80))


def test_the_address_is_that_of_the_latest_attempt_that_runs() -> None:
    total, address = TasksTotal(0.0), "http://127.0.0.1:{}/rows"
    reports = {
        task: TaskState(report(address=address.format(port))) for port, task in ((1, SECOND), (2, FIRST))
    }
    total.add([], reports, 1.0)
    assert total.document(LIMITS, 1.0)["address"] == address.format(1)
    total.add([(SECOND, report())], {FIRST: reports[FIRST]}, 2.0)
    assert total.document(LIMITS, 2.0)["address"] == address.format(2)
    total.add([], {FIRST: TaskState(report(address="https://[::1]:8080/rows"))}, 3.0)
    assert total.document(LIMITS, 3.0)["address"] == "https://[::1]:8080/rows"
    total.add([(FIRST, reports[FIRST].counts)], {}, 4.0)
    assert "address" not in total.document(LIMITS, 4.0), "no task serves any more"


@pytest.mark.parametrize(
    "address",
    [
        *("", "x", 7, ["http://h:1/rows"], "ftp://h:1/rows", "http://h/rows", "http://h:1/other"),
        *("http://user:password@h:1/rows", "http://h:1/rows\n", "http://h:1/rows?x", "http://\u202eh:1/rows"),
        *(f"http://{'h' * 254}:1/rows", "http://h:123456/rows", "javascript://h:1/rows"),
    ],
)
def test_a_task_names_no_other_address_than_one_of_rows(address: object) -> None:
    total = TasksTotal(0.0)
    total.add([], {FIRST: TaskState(report(address=address))}, 1.0)
    assert "address" not in total.document(LIMITS, 1.0)


@pytest.mark.parametrize(
    "hostile",
    [
        {},
        {"lanes": 7},
        {"lanes": {"a": 7}},
        {"lanes": {"a": {"read": "x", "delivered": float("inf"), "dead": -1, "other": 3}}},
        {"latencies": {"x": 1, "-3": 1, "99999999": 1}},
        {"latencies": [1]},
        {"in_flight": "many", "is_full": 1, "oldest": None, "push_seconds": float("nan")},
    ],
)
def test_a_report_that_is_none_counts_nothing(hostile: dict[str, Any]) -> None:
    total = TasksTotal(0.0)
    total.add([(FIRST, hostile)], {SECOND: TaskState(hostile)}, 1.0)
    found = total.document(LIMITS, 1.0)
    assert (found["read"], found["delivered"], found["dead"], found["p99"]) == (0, 0, 0, 0.0)
    assert found["in_flight"] == found["oldest"] == found["push_seconds"] == 0


def test_lanes_of_many_tasks_take_bounded_memory_and_their_counts_stay() -> None:
    total = TasksTotal(0.0)
    for number in range(300):
        lanes = {f"lane {number}-{lane}": {"read": 1} for lane in range(20)} | {
            "x" * 5000 + str(number): {"read": 1}
        }
        total.add([(TaskId(0, number), {"lanes": lanes})], {}, 1.0)
    found = total.document(LIMITS, 1.0)
    assert found["read"] == 300 * 21
    assert len(found["lanes"]) <= 51
    assert len(str(found["lanes"])) < 20_000
    assert sum(lane["read"] for lane in found["lanes"].values()) == 300 * 21
    assert len(total._lanes()) <= 1001  # noqa: SLF001 - what it keeps


def test_a_number_of_a_hostile_task_is_none() -> None:
    total = TasksTotal(0.0)
    total.add([(FIRST, report(counts={"read": 10**400}))], {}, 1.0)
    assert total.document(LIMITS, 1.0)["read"] == 0


def test_the_water_line_is_that_of_the_fuller_buffer() -> None:
    total = TasksTotal(0.0)
    total.add([], {FIRST: TaskState({"buffered": 30, "buffered_bytes": 800})}, 1.0)
    assert total.document(Limits(buffer_records=100, buffer_bytes=1000), 1.0)["water_line"] == 0.8
    assert total.document(Limits(buffer_records=40, buffer_bytes=10_000), 1.0)["water_line"] == 0.75
    assert total.document(Limits(buffer_records=10), 1.0)["water_line"] == 1.0, "a smaller one was set"


def test_a_buffer_that_stops_reading_is_full_although_it_holds_little_of_its_limit() -> None:
    total, is_full = TasksTotal(0.0), [*[True] * 4, False] * 4  # a part of many rows is delivered at times
    for second, each in enumerate(is_full, 1):
        total.add([], {FIRST: TaskState({"buffered": 2, "is_full": each})}, float(second))
        assert second < 5 or total.document(LIMITS, float(second))["water_line"] == pytest.approx(
            0.8, abs=0.1
        )
    for second in range(21, 31):
        running = {FIRST: TaskState({"is_full": False}), SECOND: TaskState({"is_full": second > 25})}
        total.add([], running, float(second))
    assert total.document(LIMITS, 30.0)["water_line"] == 0.25, (
        "of two tasks, one has stopped half of the time"
    )
    assert total.document(LIMITS, 40.0)["water_line"] == 0


def test_two_pushes_into_one_target_have_a_buffer_each() -> None:
    total = TasksTotal(0.0)
    total.add([], {FIRST: TaskState({"buffered": 30}), SECOND: TaskState({"buffered": 30})}, 1.0)
    assert total.document(LIMITS, 1.0, pushes=2)["water_line"] == 0.3


def test_what_a_source_has_makes_the_lag_with_what_is_read_and_not_delivered() -> None:
    total = TasksTotal(0.0)
    running = {FIRST: TaskState({"buffered": 5, "available": 70}), SECOND: TaskState({"buffered": 1})}
    total.add([], running, 1.0)
    found = total.document(LIMITS, 1.0)
    assert (found["available"], found["lag"]) == (70, 76)
    total.add([], {SECOND: TaskState({"buffered": 1, "available": None})}, 2.0)
    assert "lag" not in total.document(LIMITS, 2.0), "no source says what it has"
