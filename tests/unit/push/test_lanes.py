"""Which lane is next: fair, by priority, and as fast with thousands of lanes as with a few."""

import sys

import pytest

from spark_runner.push.batch import Batch, Destination, Priority, Record
from spark_runner.push.errors import Overloaded
from spark_runner.push.lanes import Lanes
from spark_runner.push.retry import FollowUp
from spark_runner.push.settings import LaneLimits, Limits, PushSettings


def lanes_with(
    records: list[Record], limits: Limits | None = None, *, settings: PushSettings | None = None
) -> Lanes:
    found = Lanes(settings or PushSettings(batch_records=1), limits or Limits(concurrency=1))
    portion = found.read(len(records), None)
    for number, record in enumerate(records):
        found.add(Destination(*found.place_of(record)), [record], [number], portion, 0.0)
    return found


def settle(lanes: Lanes, batch: Batch, now: float = 0.0) -> None:
    for each in lanes.settle(batch, None, FollowUp(), now).acknowledged:
        lanes.acknowledge(each)


def served(lanes: Lanes) -> list[Batch]:
    """All batches in their order, one request at a time."""
    found = list[Batch]()
    while batch := lanes.start(0.0):
        found.append(batch)
        settle(lanes, batch)
    return found


def test_without_records_of_the_lowest_priority_the_highest_is_served_first() -> None:
    lanes = lanes_with([Record(0, 1, priority=each) for _ in range(30) for each in list(Priority)[:2]])
    order = [batch.priority for batch in served(lanes)]
    assert order == [Priority.HIGH] * 30 + [Priority.MEDIUM] * 30


def test_a_lane_whose_requests_do_not_end_has_no_more_of_them_than_others() -> None:
    lanes = lanes_with([Record(0, 1, lane) for _ in range(200) for lane in "abcd"], Limits(concurrency=8))
    slow, others = 0, 0
    while others < 300:
        batch = lanes.start(0.0)
        assert batch is not None
        if batch.lane == "a":
            slow += 1
        else:
            settle(lanes, batch)
            others += 1
    assert slow == 1


def test_a_slow_lane_has_its_share_though_others_are_idle_now() -> None:
    lanes, now, number = lanes_with([Record(0, 1, "slow")] * 100, Limits(concurrency=8)), 0.0, 100
    slow = 0
    for _ in range(50):
        record = Record(0, 1, "quick")
        lanes.add(Destination(*lanes.place_of(record)), [record], [number], lanes.read(1, None), now)
        number += 1
        found = list[Batch]()
        while batch := lanes.start(now):
            found.append(batch)
        now += 0.01
        slow += sum(batch.lane == "slow" for batch in found)
        for batch in found:
            if batch.lane == "quick":
                settle(lanes, batch, now)
    assert slow == 4


def test_a_lane_alone_has_all_requests_in_flight() -> None:
    lanes = lanes_with([Record(0, 1, "slow")] * 100, Limits(concurrency=8))
    count = 0
    while lanes.start(0.0):
        count += 1
    assert count == 8


def test_each_lane_has_its_turn_in_its_order() -> None:
    lanes = lanes_with([Record(0, 1, lane) for _ in range(3) for lane in "abc"])
    assert "".join(batch.lane for batch in served(lanes)) == "abcabcabc"


def test_a_rate_of_a_lane_is_not_forgotten_while_thousands_of_others_come_and_go() -> None:
    limits = Limits(concurrency=1, lanes={"x": LaneLimits(rate=0.001)})
    lanes, count = lanes_with([], limits), 0
    for number in range(3000):
        record = Record(0, 1, "x" if number % 500 == 0 else f"lane-{number}")
        lanes.add(Destination(*lanes.place_of(record)), [record], [number], lanes.read(1, None), 0.0)
        for batch in served(lanes):
            count += batch.lane == "x"
    assert count == 1
    assert len(list(lanes)) < 2500, "idle ones are forgotten"


def refused(lanes: Lanes, now: float, *, is_busy: bool) -> int:
    """Let the target take no record of any batch; returns the number of batches."""
    count = 0
    while batch := lanes.start(now):
        rest = batch.part(range(len(batch)))
        lanes.settle(batch, Overloaded("busy"), FollowUp([rest], pause=60.0, is_busy=is_busy), now)
        count += 1
    return count


@pytest.mark.parametrize(("is_busy", "early"), [(True, 4), (False, 0)])
def test_pauses_that_a_busy_target_caused_end_as_soon_as_it_takes_other_records(
    is_busy: bool, early: int
) -> None:
    settings = PushSettings(batch_records=1, is_adaptive=False)
    lanes = lanes_with([Record(0, 1)] * 8, Limits(concurrency=4), settings=settings)
    assert refused(lanes, 0.0, is_busy=is_busy) == 8
    (late,) = records = [Record(1, 1)]
    lanes.add(Destination(*lanes.place_of(late)), records, [8], lanes.read(1, None), 1.0)
    batch = lanes.start(1.0)
    assert batch is not None
    assert batch.records == [late]
    assert lanes.start(1.0) is None
    settle(lanes, batch, 1.5)
    assert sum(lanes.start(1.5) is not None for _ in range(8)) == early


def test_one_batch_asks_a_busy_target_again_after_two_seconds() -> None:
    settings = PushSettings(batch_records=1)
    lanes = lanes_with([Record(0, 1)] * 8, Limits(concurrency=4), settings=settings)
    assert refused(lanes, 0.0, is_busy=True) == 8
    assert lanes.next_time(0.0) == 2.0
    assert refused(lanes, 2.0, is_busy=True) == 1


def test_a_lane_that_is_asked_to_wait_for_long_does_not_keep_the_others_back() -> None:
    lanes = lanes_with(
        [*(Record(0, 1, "busy") for _ in range(12)), Record(0, 1, "well")], Limits(concurrency=20)
    )
    batches = [batch for _ in range(13) if (batch := lanes.start(0.0))]
    for batch in batches:
        if batch.lane == "busy":
            lanes.settle(batch, Overloaded("429", 300.0), FollowUp([batch.part([0])], pause=300.0), 0.0)
    record = Record(0, 1, "well")
    lanes.add(Destination(*lanes.place_of(record)), [record], [99], lanes.read(1, None), 0.0)
    at = lanes.next_time(0.0)
    assert at is not None
    assert at <= 2.0


@pytest.mark.parametrize("count", [10, 3000])
def test_a_choice_takes_as_many_calls_whatever_the_number_of_lanes(count: int) -> None:
    records = [Record(0, 1, f"lane-{number % count}") for number in range(2 * count)]
    lanes = lanes_with(records, Limits(concurrency=1, buffer_records=10_000))
    calls = 0

    def counted(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(counted)
    try:
        for _ in range(10):
            batch = lanes.start(0.0)
            assert batch is not None
            settle(lanes, batch)
    finally:
        sys.setprofile(None)
    assert calls < 10 * 400
