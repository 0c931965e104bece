"""The law of the controller for one resource: the allocation of the next run, as a pure function.

A velocity form in logarithms: a step is added to the allocation that the last run really had, so that limits,
rounding and changes by a user leave no hidden integral behind (no wind-up).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.config.tuning import Gains
from orchestrator.tuning.demand import ENOUGH_RUNS, Demand, Use, demand

FLOOR_FACTOR = 1.05  # times what a run was short of: less is not tried for a while


class Rule(StrEnum):
    """Why an allocation changes, or stays."""

    SHORT = "short"  # the last run failed for want of it
    GROW = "grow"
    SHRINK = "shrink"
    DEAD_BAND = "dead_band"
    HELD = "held"  # the demand is another one, and something forbids to follow it
    FLOOR = "floor"  # it rises above what a run that was short or pressed had


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the largest allocation, and the multiples in which it is given.

    `neglected` is the share of a grain that is not rounded up.
    """

    least: float
    largest: float
    grain: float
    neglected: float = 1e-9  # without it, an exact multiple may become the next one

    def clamped(self, value: float) -> float:
        """The value within the bounds, rounded up to a multiple of the grain where they allow it."""
        rounded = math.ceil(value / self.grain - self.neglected) * self.grain
        return min(max(rounded, self.least), self.largest)


@dataclass(frozen=True, slots=True)
class Step:
    """The allocation of the next run, with what it follows from.

    `target` is what the demand alone asks for; a step may be smaller (`is_limited`), or end at a bound.
    """

    before: float
    after: float
    rule: Rule
    target: float
    demand: Demand | None = None
    needed: float = 0.0  # without any margin, by the demand, and by what runs were short of
    is_limited: bool = False
    at_bound: bool = False  # the allocation is the least or the largest one


def next_step(
    uses: Sequence[Use],
    bounds: Bounds,
    gains: Gains,
    *,
    next_input: float | None = None,
    may_shrink: bool = True,
    may_grow: bool = True,
) -> Step:
    """The step after these runs, newest last, at least one.

    `next_input`: the size of what the next run reads, None if unknown; `may_shrink` and `may_grow` are False
    where a guard forbids that. What a run was short of may grow all the same.
    """
    before = uses[-1].allocated
    if uses[-1].is_short:
        wanted = grown(before, bounds, gains)
        after = _given(before, wanted, wanted, bounds)
        needed = _floor(uses, gains)
        return Step(before, after, Rule.SHORT, wanted, needed=needed, at_bound=after == bounds.largest)
    found = demand(uses, before, gains, next_input)
    target = _target(found, gains)
    change, is_limited = _change(math.log(target / before), found, before, gains)
    floor = _floor(uses, gains)
    is_still = any(use.is_short for use in uses[-gains.still :])
    wanted = before * math.exp(change) if change else before
    if wanted < before:
        wanted = before if is_still or not may_shrink else max(wanted, min(floor, before))
    if wanted > before and not may_grow:
        wanted = before
    rule = Rule.DEAD_BAND if not change else Rule.GROW if change > 0 else Rule.SHRINK
    if change and wanted == before:
        rule = Rule.HELD
    if wanted < floor:
        rule, wanted = Rule.FLOOR, floor
    after = _given(before, wanted, max(target, floor), bounds)
    needed = max(floor, found.largest_value)
    at_bound = after in {bounds.least, bounds.largest}
    return Step(before, after, rule, target, found, needed, is_limited, at_bound)


def _target(found: Demand, gains: Gains) -> float:
    """So far above the largest demand as past runs differ, within the least and the most margin."""
    spread = max(found.mean + gains.spread * found.deviation, found.largest + gains.least_margin)
    aim = min(spread, found.largest + gains.most_margin)
    return math.exp(aim + (gains.cold_margin if found.runs < ENOUGH_RUNS else 0.0))


def _change(error: float, found: Demand, before: float, gains: Gains) -> tuple[float, bool]:
    """The change for an error, 0 in the dead band, as logarithms; and whether a largest step limits it."""
    if abs(error) < gains.dead_band:
        return 0.0, False
    if error > 0:
        return min(gains.up * error, gains.rise), gains.up * error > gains.rise
    is_idle = math.exp(found.largest) < gains.idle_use * before
    fall = gains.idle_fall if is_idle else gains.fall
    return max(gains.down * error, -fall), gains.down * error < -fall


def grown(allocated: float, bounds: Bounds, gains: Gains) -> float:
    """The allocation after a run that was short: half as much again, and one grain at least."""
    return max(gains.shortage_factor * allocated, allocated + bounds.grain)


def _floor(uses: Sequence[Use], gains: Gains) -> float:
    """What the last short or pressed runs had, and 5 % more: no step goes below it for a while."""
    held = (use for use in uses[-gains.hold :] if use.is_short or use.is_pressed)
    return max((FLOOR_FACTOR * use.allocated for use in held), default=0.0)


def _given(before: float, wanted: float, target: float, bounds: Bounds) -> float:
    # An allocation that stays is not rounded, and rounding turns no step down into one up.
    if wanted == before:
        return min(max(before, bounds.least), bounds.largest)
    after = bounds.clamped(wanted)
    if wanted > before:
        return after
    if after >= before and bounds.clamped(target) <= before - bounds.grain:
        after = before - bounds.grain  # of two executors one is left: three quarters would be two for ever
    return max(min(after, before), bounds.least) if before > bounds.least else bounds.least
