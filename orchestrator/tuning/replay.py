"""A replay of past runs: what the law would have given each of them, with other gains or another start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from orchestrator.config.tuning import Gains
from orchestrator.tuning.demand import SHORT_FACTOR, Use
from orchestrator.tuning.law import Bounds, Step, grown, next_step

_MOST_RETRIES = 8


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """One run: what it had and used, what it would have had, and how often that would have been too little.

    `step` is the law's, None for the first run.
    """

    had: float
    used: float
    given: float
    failures: int
    step: Step | None = None


def replay(uses: Sequence[Use], bounds: Bounds, gains: Gains, *, start: float) -> list[ReplayedRun]:
    """The runs again, oldest first; `start` is what the first one gets.

    The garbage that a larger heap holds is taken off as the law does. Of a run that was out of memory only
    what it had is known.
    """
    known, replayed = list[Use](), list[ReplayedRun]()
    for use in uses:
        step = next_step(known, bounds, gains, next_input=use.input) if known else None
        given, failures = start if step is None else step.after, 0
        need = SHORT_FACTOR * use.allocated if use.is_short else use.peak
        while need > given and failures < _MOST_RETRIES and given < bounds.largest:
            failures += 1
            known.append(replace(use, allocated=given, peak=given, is_short=True))
            given = bounds.clamped(grown(given, bounds, gains))
        garbage = gains.garbage * (given - use.allocated)
        peak = min(max(need + garbage, 0.5 * need), given)
        known.append(replace(use, allocated=given, peak=peak, is_short=False))
        replayed.append(ReplayedRun(use.allocated, need, given, failures, step))
    return replayed
