"""The speed of this machine, for limits in seconds that must hold on a slower one too."""

import os
import time
from collections.abc import Callable
from functools import cache
from statistics import median

_VARIABLE = "ORCHESTRATOR_SLOWNESS"
_LOOPS = 5
_ADDITIONS = 1_000_000
_REFERENCE_SECONDS = 0.025  # of one loop on the machine for which the limits were set


def measured_slowness() -> float:
    """How many times longer work takes here, now, than on the reference machine; at least 1.

    The time that other tests have the processors counts.
    """
    return _slowness(time.perf_counter)


@cache
def slowness() -> float:
    """The slowness at the start of the run, before its tests share the processors."""
    found = os.environ.setdefault(
        _VARIABLE, f"{_slowness(time.thread_time):.2f}"
    )  # for worker processes, too
    return float(found)


def _slowness(clock: Callable[[], float]) -> float:
    return max(1.0, median(_loop_seconds(clock) for _ in range(_LOOPS)) / _REFERENCE_SECONDS)


def _loop_seconds(clock: Callable[[], float]) -> float:
    began, total = clock(), 0
    for number in range(_ADDITIONS):
        total += number
    return clock() - began
