"""The demand of the next run for one resource, from what past runs used of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from orchestrator.config.tuning import Gains

ENOUGH_RUNS = 5  # fewer are a cold start
SHORT_FACTOR = 1.1  # a run that was short or pressed needed more than it had, at least so much is assumed
LIKE_HEAP = 3.0  # times a heap: what Spark's memory manager gives out depends on its size, beyond that much

_LEAST_RANGE = 0.3  # of the logarithms of the inputs: below that, their noise hides what they cause
_MOST_GARBAGE = 0.5  # of a measured peak
_RARE_SHARE = 0.15  # of the runs: what more of them need is usual
_MOST_CHANGE = 50.0  # of an input, as a logarithm; beyond it the numbers of a demand overflow
_NORMAL = 1.4826  # standard deviations of a normal distribution in one median deviation


@dataclass(frozen=True, slots=True)
class Use:
    """What one run had of a resource, and the most that it used at a time; both in the unit of the resource.

    `is_short`: it failed for want of the resource, `is_pressed`: it suffered from it, as runs with more did
    not; in both its demand is above `allocated`. `least`: what it needed for sure, without any garbage.
    `input`: the size of what it read, in any unit that is the
    same for all runs; None if unknown.
    """

    allocated: float
    peak: float
    is_short: bool = False
    is_pressed: bool = False
    least: float = 0.0
    input: float | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """The logarithms of the largest and of the mean demand of past runs, and their standard deviation."""

    runs: int
    largest: float
    mean: float
    deviation: float

    @property
    def largest_value(self) -> float:
        """The largest demand, in the unit of the resource."""
        return math.exp(self.largest)


def demand(uses: Sequence[Use], current: float, gains: Gains, next_input: float | None = None) -> Demand:
    """The demand of past runs, as if they had had `current` and read `next_input`; newest last, not empty.

    The standard deviation is that of a normal distribution whose prior has the weight of `prior_runs` runs. A
    demand far above the usual ones counts for `rare_runs` runs only: memory for it all the time would cost
    more than a second attempt now and then. A demand is not rare if runs suffered twice with so little.
    """
    recent = uses[-gains.window :]
    growth = _Growth.of(recent, gains)
    logs = [math.log(_peak(use, current, gains)) + growth.of_inputs(use.input, next_input) for use in recent]
    lasting = [each for each, use in zip(logs, recent, strict=True) if not use.is_short] or logs
    usual = _usual(lasting, gains)
    mean = math.fsum(usual) / len(usual)
    squares = math.fsum((each - mean) ** 2 for each in usual)
    prior = gains.prior_runs * gains.prior_spread**2
    deviation = math.sqrt((prior + squares) / (gains.prior_runs + len(usual) - 1))
    pressed = sorted(each for each, use in zip(logs, recent, strict=True) if use.is_pressed)
    largest = max(*usual, *logs[-gains.rare_runs :], *pressed[-2:-1])
    return Demand(len(logs), largest, mean, deviation)


def _usual(logs: Sequence[float], gains: Gains) -> list[float]:
    """The demands without rare ones, which do not change the median and the median deviation."""
    middle = median(logs)
    spread = _NORMAL * median(abs(each - middle) for each in logs)
    prior = gains.prior_runs * gains.prior_spread**2
    deviation = math.sqrt((prior + len(logs) * spread**2) / (gains.prior_runs + len(logs)))
    usual = [each for each in logs if each <= middle + gains.rare * deviation]
    return usual if len(logs) - len(usual) <= max(1, _RARE_SHARE * len(logs)) else list(logs)


def _peak(use: Use, current: float, gains: Gains) -> float:
    """The peak as if at the current allocation: a larger heap is collected later, and holds more garbage."""
    if use.is_short or use.is_pressed:
        return max(use.peak, SHORT_FACTOR * use.allocated)
    garbage = gains.garbage * max(0.0, use.allocated - current)
    # Pages of Spark's memory manager are larger in a larger heap, up to 64 MiB: of much larger ones more of
    # them was given out.
    least = use.least if use.allocated <= LIKE_HEAP * current else 0.0
    return max(use.peak - min(garbage, _MOST_GARBAGE * use.peak), least)


@dataclass(frozen=True, slots=True)
class _Growth:
    """How the demand grows with the input: elasticities, of which the next run gets the more careful one.

    Within the range of known inputs that is a limit of the confidence interval of their regression; beyond
    it, 1 upwards (a demand in proportion to the input) and 0 downwards.
    """

    least: float
    most: float
    smallest: float  # logarithm of the smallest known input
    largest: float

    @classmethod
    def of(cls, uses: Sequence[Use], gains: Gains) -> "_Growth":
        known = [(math.log(use.input), math.log(use.peak)) for use in uses if use.input and not use.is_short]
        inputs = [x for x, _ in known]
        if not inputs:
            return cls(0.0, 1.0, -math.inf, math.inf)
        smallest, largest = min(inputs), max(inputs)
        if len(known) < ENOUGH_RUNS or largest - smallest < _LEAST_RANGE:
            return cls(0.0, 1.0, smallest, largest)
        mean_x, mean_y = (math.fsum(column) / len(known) for column in zip(*known, strict=True))
        squares = math.fsum((x - mean_x) ** 2 for x in inputs)
        slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in known) / squares
        residual = math.fsum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in known)
        prior = gains.prior_runs * gains.prior_spread**2
        variance = (prior + residual) / (gains.prior_runs + len(known) - 2)
        error = 2 * math.sqrt(variance / squares)
        return cls(_share(slope - error), _share(slope + error), smallest, largest)

    def of_inputs(self, past: float | None, following: float | None) -> float:
        """The logarithm of the growth of the demand from one input to the other; 0 where one is unknown."""
        if not past or not following:
            return 0.0
        end = math.log(following)
        change = min(max(end - math.log(past), -_MOST_CHANGE), _MOST_CHANGE)
        if change > 0:
            beyond = min(change, max(0.0, end - self.largest))
            return self.most * (change - beyond) + beyond
        beyond = min(-change, max(0.0, self.smallest - end))
        return self.least * (change + beyond)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
