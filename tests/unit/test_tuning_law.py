"""Properties of the controller of one resource, for any history."""

import itertools
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.config.tuning import Gains
from orchestrator.tuning.demand import Use, demand
from orchestrator.tuning.law import Bounds, Rule, next_step

BOUNDS = Bounds(512, 65_536, 64)
GAINS = Gains()

sizes = st.floats(64, 100_000)
inputs = st.none() | st.floats(1, 1e15) | st.sampled_from([5e-324, 1e-300, 2.0**50])
uses = st.builds(
    lambda allocated, share, short, pressed, read: Use(
        allocated, allocated * share, is_short=short, is_pressed=pressed and not short, input=read
    ),
    sizes,
    st.floats(0.001, 1),
    st.booleans(),
    st.booleans(),
    inputs,
)
histories = st.lists(uses, min_size=1, max_size=60)
calm_histories = st.lists(
    st.builds(
        lambda allocated, share, read: Use(allocated, allocated * share, input=read),
        st.floats(BOUNDS.least, BOUNDS.largest),
        st.floats(0.001, 1),
        inputs,
    ),
    min_size=1,
    max_size=60,
)
"""Histories within the bounds, without a run out of memory."""
gains = st.builds(
    Gains,
    spread=st.floats(0, 10),
    least_margin=st.floats(0, 1),
    most_margin=st.floats(0, 1),
    up=st.floats(0.01, 1),
    down=st.floats(0.01, 1),
    dead_band=st.floats(0, 1),
    window=st.integers(3, 50),
    still=st.integers(1, 50),
    hold=st.integers(1, 50),
)


@given(histories, gains, inputs, st.booleans())
def test_no_allocation_is_ever_beyond_the_bounds(
    history: list[Use], settings: Gains, following: float | None, may_shrink: bool
) -> None:
    step = next_step(history, BOUNDS, settings, next_input=following, may_shrink=may_shrink)
    assert BOUNDS.least <= step.after <= BOUNDS.largest


@given(histories, gains, inputs)
def test_nothing_shrinks_in_the_runs_after_one_out_of_memory(
    history: list[Use], settings: Gains, following: float | None
) -> None:
    assume(any(each.is_short for each in history[-settings.still :]))
    step = next_step(history, BOUNDS, settings, next_input=following)
    assert step.after >= min(step.before, BOUNDS.largest)


@given(histories, gains, inputs)
def test_no_step_goes_to_what_a_run_within_the_hold_was_short_of(
    history: list[Use], settings: Gains, following: float | None
) -> None:
    short = next((each for each in reversed(history[-settings.hold :]) if each.is_short), None)
    assume(short is not None)
    assert short is not None
    step = next_step(history, BOUNDS, settings, next_input=following)
    assert step.after >= min(short.allocated, BOUNDS.largest)


@given(histories, gains, inputs)
def test_a_guard_that_forbids_to_shrink_is_kept(
    history: list[Use], settings: Gains, following: float | None
) -> None:
    step = next_step(history, BOUNDS, settings, next_input=following, may_shrink=False)
    assert step.after >= min(step.before, BOUNDS.largest)


@given(st.floats(600, 60_000), st.floats(-0.99, 0.99), st.integers(1, 60))
def test_an_error_within_the_dead_band_changes_nothing(allocated: float, error: float, runs: int) -> None:
    wanted = allocated * math.exp(error * GAINS.dead_band)
    peak = wanted
    for _ in range(50):  # the margin depends on the history, not on the size of the peak
        step = next_step([Use(allocated, min(peak, allocated))] * runs, BOUNDS, GAINS)
        peak *= wanted / step.target
    assume(peak <= allocated)
    step = next_step([Use(allocated, peak)] * runs, BOUNDS, GAINS)
    assume(abs(math.log(step.target / allocated)) < GAINS.dead_band)
    assert step.rule is Rule.DEAD_BAND
    assert step.after == allocated


@given(calm_histories, gains, inputs)
def test_no_step_goes_beyond_its_target(history: list[Use], settings: Gains, following: float | None) -> None:
    step = next_step(history, BOUNDS, settings, next_input=following)
    match step.rule:
        case Rule.GROW:
            assert step.before <= step.after <= max(BOUNDS.clamped(step.target), step.before)
        case Rule.SHRINK:
            assert min(BOUNDS.clamped(step.target), step.before) <= step.after <= step.before
        case _:
            assert step.rule in {Rule.DEAD_BAND, Rule.HELD}
            assert step.after == step.before


@given(st.floats(400, 20_000), st.floats(1.0, 16.0))
def test_the_way_to_a_constant_demand_has_one_direction(need: float, oversize: float) -> None:
    history = [Use(need * oversize, need)]
    allocations = [history[0].allocated]
    for _ in range(30):
        after = next_step(history, BOUNDS, GAINS).after
        allocations.append(after)
        history.append(Use(after, need))
    steps = [after - before for before, after in itertools.pairwise(allocations)]
    turns = sum(a * b < 0 for a, b in itertools.pairwise(filter(None, steps)))
    # A cold start from below has a margin that later runs make needless.
    assert turns <= (oversize < 1.5), allocations


@given(st.floats(400, 6_000))
def test_ten_times_too_much_is_at_most_one_and_a_half_times_after_seven_runs(need: float) -> None:
    history = [Use(10 * need, need)]
    for _ in range(7):
        after = next_step(history, BOUNDS, GAINS).after
        assert after >= need
        history.append(Use(after, need))
    assert history[-1].allocated <= max(1.5 * need, BOUNDS.least)


def test_a_run_that_was_short_gets_half_as_much_again() -> None:
    step = next_step([Use(1024, 1024, is_short=True)], BOUNDS, GAINS)
    assert (step.after, step.rule) == (1536, Rule.SHORT)


def test_the_demand_follows_a_larger_input_at_once_and_a_smaller_one_only_by_evidence() -> None:
    history = [Use(4096, 2000, input=100)] * 4
    known = demand(history, 4096, GAINS)
    assert demand(history, 4096, GAINS, 180).largest == pytest.approx(known.largest + math.log(1.8))
    assert demand(history, 4096, GAINS, 50).largest == known.largest
    varied = [Use(4096, 20 * each, input=each) for each in range(50, 150, 5)]
    most = max(varied, key=lambda each: each.peak)
    lower = demand(varied, 4096, GAINS, 60).largest
    assert math.log(1000) < lower < math.log(most.peak) - 0.5


def test_an_input_without_a_size_changes_nothing() -> None:
    history = [Use(4096, 2000, input=0), Use(4096, 2000)]
    assert demand(history, 4096, GAINS, 180).largest == pytest.approx(math.log(2000))


def test_a_rare_demand_counts_for_a_few_runs_and_a_usual_one_for_all() -> None:
    steady = [Use(4000, 1000 + number % 5) for number in range(20)]
    rare = Use(4000, 1600)

    def largest(runs_since: int) -> float:
        found = demand([*steady, rare, *steady[:runs_since]], 4000, GAINS)
        return found.largest_value

    assert largest(GAINS.rare_runs - 1) == pytest.approx(1600)
    assert largest(GAINS.rare_runs) == pytest.approx(1004)
    often = [Use(4000, 1600 if number % 3 == 0 else 1000) for number in range(30)]
    assert demand([*often, *steady], 4000, GAINS).largest_value == pytest.approx(1600)
