"""The law of the limit of rows per micro-batch: its properties, and its way on a simulated stream."""

import math
import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_runner.sql.batch_limits.limit_law import Batch, Target, fixed_seconds, next_limit

TARGET = Target(10.0, 10, 1_000_000)
MUCH = 10**9
"""Rows that wait, more than all micro-batches read."""

batches = st.builds(
    Batch,
    rows=st.integers(0, 10**7),
    seconds=st.floats(0, 10**5),
    lag=st.none() | st.integers(0, 10**10),
    limit=st.integers(1, 10**7),
)
histories = st.lists(batches, max_size=24)
limits = st.integers(1, 10**7)
times = st.floats(0.01, 10**4)
targets = st.builds(
    lambda seconds, one, other: Target(seconds, min(one, other), max(one, other)),
    st.floats(0.1, 10**5),
    st.integers(1, 10**6),
    st.integers(1, 10**9),
)


# ---------------------------------------------------------------------- properties
@given(histories, limits, targets)
def test_the_limit_stays_within_its_bounds_and_its_step(
    history: list[Batch], limit: int, target: Target
) -> None:
    decision = next_limit(history, limit, target)
    assert target.least <= decision.limit <= target.most
    if target.clamped(limit) == limit:
        assert limit / 2 <= decision.limit <= limit * 2
    assert decision.reason


@given(histories, limits, targets, st.integers(1, 10**6), st.tuples(times, times).map(sorted))
def test_a_slower_batch_never_gives_a_larger_limit(
    history: list[Batch], limit: int, target: Target, rows: int, seconds: list[float]
) -> None:
    fast, slow = seconds
    last = Batch(rows, fast, None, limit)
    after_fast = next_limit([*history, last], limit, target)
    after_slow = next_limit([*history, replace(last, seconds=slow)], limit, target)
    assert after_slow.limit <= after_fast.limit


@given(st.lists(st.floats(6.5, 9.9), min_size=1, max_size=20), st.none() | st.integers(0, MUCH))
def test_batches_near_the_target_change_nothing(seconds: list[float], lag: int | None) -> None:
    history = [Batch(1000, each, lag, 1000) for each in seconds]
    assert next_limit(history, 1000, TARGET).limit == 1000


@given(histories, limits)
def test_a_batch_that_has_read_all_rows_in_time_changes_nothing(history: list[Batch], limit: int) -> None:
    limit = TARGET.clamped(limit)
    last = Batch(max(1, limit // 2), 1.0, 0, limit)
    assert next_limit([*history, last], limit, TARGET).limit == limit


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (
            Batch(4000, 20.0, 9, 4000),
            "4,000 rows took 20.0 s, and the target is 10 s: 4,000 becomes 2,000 rows",
        ),
        (
            Batch(4000, 2.0, None, 4000),
            "less than the target of 10 s, and more rows wait: 4,000 becomes 8,000",
        ),
        (Batch(4000, 2.0, 4000, 4000), "one more batch reads the 4,000 rows that wait"),
        (Batch(4000, 6.0, 9000, 4000), "the limit rises if the next batch is as fast"),
        (Batch(4000, 8.0, 9000, 4000), "near the target"),
        (
            Batch(40, 2.0, 0, 4000),
            "40 rows took 2.0 s, not as many as the limit: nothing holds the stream back",
        ),
        (
            Batch(9000, 2.0, MUCH, 9000),
            "9,000 rows took 2.0 s, and were planned with another limit",
        ),
        (Batch(0, 2.0, 0, 4000), "no micro-batch has been measured yet"),
        (Batch(40, math.nan, 0, 4000), "no micro-batch has been measured yet"),
        (Batch(40, math.inf, 0, 4000), "no micro-batch has been measured yet"),
    ],
)
def test_each_decision_has_its_reason(batch: Batch, words: str) -> None:
    assert words in next_limit([batch], 4000, TARGET).reason


def test_a_limit_below_the_number_of_partitions_rises_and_falls_as_any_other() -> None:
    """Spark reads at least one row of each partition that has some: 32 of as many, 158 of a skewed topic."""
    assert next_limit([Batch(32, 1.0, MUCH, 10)], 10, TARGET).limit == 20
    assert next_limit([Batch(158, 1.0, MUCH, 100)], 100, TARGET).limit == 200
    assert next_limit([Batch(158, 20.0, MUCH, 100)], 100, TARGET).limit == 50
    assert next_limit([Batch(158, 15.0, MUCH, 65)], 65, TARGET).limit < 65, "158 rows take too long"
    assert next_limit([Batch(158, 9.0, MUCH, 65)] * 2, 65, TARGET).limit == 65


def test_a_limit_at_its_bound_says_so() -> None:
    assert "10 rows are the least limit" in next_limit([Batch(10, 50.0, None, 10)], 10, TARGET).reason
    most = TARGET.most
    assert "are the largest limit" in next_limit([Batch(most, 1.0, None, most)], most, TARGET).reason


def test_the_fixed_cost_of_a_batch_is_told_from_batches_of_several_sizes() -> None:
    assert fixed_seconds([Batch(n, 3 + n / 100, None, n) for n in (100, 200, 400)]) == pytest.approx(3.0)
    assert fixed_seconds([Batch(n, 3 + n / 100, None, n) for n in (300, 310, 320)]) == 0.0
    assert fixed_seconds([Batch(n, 9 - n / 100, None, n) for n in (100, 200, 400)]) == 0.0


# ---------------------------------------------------------------------- a simulated stream
@dataclass
class Plant:
    """Batches of a stream that never ends: seconds = (fixed + rows / rate) * slowness, with noise."""

    fixed: float
    rate: float
    seed: int
    noise: float = 0.2
    slowness: float = 1.0

    def run(self, limit: int, count: int, target: Target = TARGET) -> list[Batch]:
        draw, history = random.Random(self.seed), list[Batch]()  # noqa: S311 - a simulation
        for number in range(count):
            if number == count // 2:
                self.fixed, self.rate = self.fixed * self.slowness, self.rate / self.slowness
            noise = draw.uniform(1 - self.noise, 1 + self.noise)
            history.append(Batch(limit, (self.fixed + limit / self.rate) * noise, MUCH, limit))
            limit = next_limit(history, limit, target).limit
        return history


plants = st.builds(
    Plant, fixed=st.floats(0, 3), rate=st.floats(50, 5000), seed=st.integers(0, 10**6), noise=st.just(0.2)
)


def best(plant: Plant) -> float:
    return (TARGET.seconds - plant.fixed) * plant.rate


@given(plants, st.floats(0.15, 1.0))
def test_a_low_limit_reaches_the_target_within_8_batches_without_a_batch_of_twice_its_time(
    plant: Plant, share: float
) -> None:
    history = plant.run(max(10, int(best(plant) * share)), 30)
    assert all(each.seconds <= 2 * TARGET.seconds for each in history[1:])
    assert all(best(plant) * 0.4 <= each.rows <= best(plant) * 1.3 for each in history[8:])


@given(plants, st.floats(1.0, 16.0))
def test_a_high_limit_falls_to_the_target_within_8_batches(plant: Plant, share: float) -> None:
    history = plant.run(int(best(plant) * share), 30)
    assert all(each.seconds <= 1.35 * TARGET.seconds for each in history[8:])
    assert all(each.rows >= best(plant) * 0.4 for each in history[8:])


@given(plants)
def test_a_stream_that_becomes_3_times_slower_is_back_at_its_target_within_8_batches(plant: Plant) -> None:
    plant.fixed, plant.slowness = plant.fixed / 3, 3.0
    history = plant.run(int(best(plant) / 2), 40)
    assert all(each.seconds <= 1.35 * TARGET.seconds for each in history[28:])
    assert all(each.rows >= best(plant) * 0.35 for each in history[28:])  # of the slow one


@given(plants)
def test_a_steady_stream_has_few_changes(plant: Plant) -> None:
    history = plant.run(int(best(plant) * 0.8), 60)
    assert len({each.limit for each in history[10:]}) <= 8


@given(st.floats(10, 60), st.integers(0, 10**6))
def test_a_target_below_the_fixed_cost_of_a_batch_does_not_lead_to_tiny_batches(
    fixed: float, seed: int
) -> None:
    plant = Plant(fixed, 100.0, seed)
    history = plant.run(int(fixed * 100 * 8), 40)
    assert all(each.rows >= fixed * 100 * 0.08 for each in history)
