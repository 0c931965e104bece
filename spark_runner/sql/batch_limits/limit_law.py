"""The law by which the limit of rows per micro-batch follows the measured times of micro-batches.

Like `PIDRateEstimator` of Spark it compares the measured rate with the wanted one: Kp, of the error, is 1 for
a lower limit and 0.7 for a higher one; Ki, 0.2, is of the *measured* delay, the time that the last batch took
beyond the target, and not of a sum of past errors; there is no D term, for the noise of batches. A delay that
is measured ends with its cause, so nothing winds up while the limit is clamped. Other than there, the step is
one of logarithms on the limit in force (velocity form), since the time of a batch is a ratio of rows and
rate, and a batch has a fixed cost: seconds = fixed + rows / rate.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

KP_UP, KP_DOWN, KI = 0.7, 1.0, 0.2
DEAD_BAND = 0.25
"""Errors, as logarithms, that change nothing: a change restarts the query, and batches are noisy."""
_AIM = 0.8  # of the target: the dead band above it ends near the target
_STEP = math.log(2)  # a change doubles or halves the limit at most
_USED = 0.9  # of the limit, if the lag is unknown: a batch with fewer rows has read all that there were
_USED_WITH_LAG = 0.5  # Spark gives each partition a whole number of rows, and leaves some out
_SPREAD = 2.0  # of rows, from which their times tell the fixed cost
_SHORTEST = 0.001  # seconds: the clock of Spark has milliseconds
_MIN_FIT = 3  # batches
_MISFIT = 0.25  # of the times, as a share: more than noise
_FAR_BELOW = 0.5  # of the target: one such batch is enough to raise the limit


@dataclass(frozen=True, slots=True)
class Batch:
    """A finished micro-batch; `lag` are the rows that it left in the source, None if unknown."""

    rows: int
    seconds: float
    lag: int | None
    limit: int

    @property
    def is_measured(self) -> bool:
        """Whether it says anything about the time of rows."""
        return self.rows > 0 and _SHORTEST <= self.seconds < math.inf and self.limit > 0


@dataclass(frozen=True, slots=True)
class Target:
    """The longest time of a micro-batch in seconds, and the least and the most rows of its limit."""

    seconds: float
    least: int
    most: int

    def clamped(self, limit: int) -> int:
        """The nearest limit within the bounds."""
        return max(self.least, min(self.most, limit))


@dataclass(frozen=True, slots=True)
class Decision:
    """The limit of rows per micro-batch, and why, in one sentence."""

    limit: int
    reason: str


def next_limit(batches: Sequence[Batch], limit: int, target: Target) -> Decision:
    """The next limit, by recent batches, the last one last; `limit` is in force.

    A batch that did not use its limit, or was planned before the last change, tells the time of its rows
    alone: it lowers the limit if it took too long, and never raises it.
    """
    if (clamped := target.clamped(limit)) != limit:
        return Decision(clamped, f"the limit is from {target.least:,} to {target.most:,} rows")
    measured = [each for each in batches if each.is_measured]
    if not measured:
        return Decision(limit, "no micro-batch has been measured yet")
    last, cost = measured[-1], fixed_seconds(measured[:-1])
    aim = max(_AIM * target.seconds, 2 * cost)
    took = f"{last.rows:,} rows took {last.seconds:.1f} s"
    error = _error(last, cost, aim, limit, target)
    if error < -DEAD_BAND and last.seconds > aim:
        why = f"{took}, and the target is {target.seconds:g} s"
        if 2 * cost > target.seconds:
            why += f", of which each batch needs {cost:.1f} s for itself"
        return _changed(limit, KP_DOWN * error, target, why)
    used = [each for each in measured[-2:] if _has_used(each, limit)]
    if last in used:  # without the fixed cost, which would make the step larger, and may be wrong
        error = min(_error(each, 0.0, aim, limit, target) for each in used)
    is_sure = len(used) > 1 or last.seconds < _FAR_BELOW * target.seconds
    if last.limit != limit:
        return Decision(limit, f"{took}, and were planned with another limit")
    if (why_not := _holds(last, used, error, is_sure=is_sure)) is not None:
        return Decision(limit, f"{took}{why_not}")
    waiting = "more rows wait" if last.lag is None else f"{last.lag:,} rows wait"
    why = f"{took}, less than the target of {target.seconds:g} s, and {waiting}"
    return _changed(limit, KP_UP * error, target, why)


def _has_used(batch: Batch, limit: int) -> bool:
    least = _USED if batch.lag is None else _USED_WITH_LAG
    return batch.limit == limit and batch.rows / limit >= least


def _holds(last: Batch, used: Sequence[Batch], error: float, *, is_sure: bool) -> str | None:
    """Why the limit does not rise; None if it does."""
    if last not in used:
        return ", not as many as the limit: nothing holds the stream back"
    if last.lag is not None and last.lag <= last.limit:
        return f", and one more batch reads the {last.lag:,} rows that wait"
    if error <= DEAD_BAND:
        return ", near the target"
    return None if is_sure else "; the limit rises if the next batch is as fast"


def fixed_seconds(batches: Sequence[Batch]) -> float:
    """The time of a batch without rows, by least squares; 0 if the batches do not tell it.

    The noise of a time is a share of it, so the weights are 1 / seconds^2. 0 is the careful value: a fall
    takes more steps.
    """
    if len(batches) < _MIN_FIT or max(each.rows for each in batches) < _SPREAD * min(
        each.rows for each in batches
    ):
        return 0.0
    points = [(each.rows, each.seconds, each.seconds**-2) for each in batches]
    total = math.fsum(weight for _, _, weight in points)
    mean_rows = math.fsum(weight * rows for rows, _, weight in points) / total
    mean_seconds = math.fsum(weight * seconds for _, seconds, weight in points) / total
    over = math.fsum(weight * (rows - mean_rows) ** 2 for rows, _, weight in points)
    both = math.fsum(
        weight * (rows - mean_rows) * (seconds - mean_seconds) for rows, seconds, weight in points
    )
    if both <= 0 or over <= 0:  # the rate has changed meanwhile
        return 0.0
    slope = both / over
    cost = mean_seconds - slope * mean_rows
    misfit = math.fsum(((cost + slope * rows) / seconds - 1) ** 2 for rows, seconds, _ in points)
    if math.sqrt(misfit / len(points)) > _MISFIT:  # likewise
        return 0.0
    return max(0.0, min(cost, 0.9 * min(each.seconds for each in batches)))


def _error(batch: Batch, cost: float, aim: float, limit: int, target: Target) -> float:
    """How far the limit is from the wanted one, as a logarithm.

    Spark gives each partition with records at least one, so a batch may have more rows than its limit: then
    the limit changes by the ratio by which the rows should.
    """
    rows = max(limit, batch.rows) if batch.limit == limit else limit
    return math.log(_wanted(batch, cost, aim, target) / rows)


def _wanted(batch: Batch, cost: float, aim: float, target: Target) -> float:
    """The rows that would take the time aimed at, at the rate of this batch."""
    delay = max(0.0, batch.seconds - target.seconds)
    usable = max(aim - cost - KI * delay, (aim - cost) / 4)
    return batch.rows * usable / max(batch.seconds - cost, batch.seconds / 4)


def _changed(limit: int, step: float, target: Target, why: str) -> Decision:
    wanted = limit * math.exp(max(-_STEP, min(_STEP, step)))
    digits = 1 - math.floor(math.log10(wanted)) if wanted >= 10 else 0  # noqa: PLR2004 - of two digits
    least, most = math.ceil(limit / 2), limit * 2
    rounded = int(round(wanted, min(0, digits)))
    found = target.clamped(max(least, min(most, rounded)))
    if found == limit:
        bound = "least" if step < 0 else "largest"
        return Decision(limit, f"{why}, but {limit:,} rows are the {bound} limit")
    return Decision(found, f"{why}: {limit:,} becomes {found:,} rows")
