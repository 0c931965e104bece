"""The speed of this machine, for limits in seconds that must hold on a slower one too."""

import os
import time
from functools import cache
from statistics import median

_VARIABLE = "ORCHESTRATOR_SLOWNESS"
_LOOPS = 5
_ADDITIONS = 1_000_000
_REFERENCE_SECONDS = 0.025  # of one loop on the machine for which the limits were set


def measured_slowness() -> float:
    """How many times longer work takes here, now, than on the reference machine; at least 1."""
    return max(1.0, median(_loop_seconds() for _ in range(_LOOPS)) / _REFERENCE_SECONDS)


@cache
def slowness() -> float:
    """The slowness at the start of the run, before its tests share the processors."""
    return float(os.environ.setdefault(_VARIABLE, f"{measured_slowness():.2f}"))  # for worker processes, too


def _loop_seconds() -> float:
    began, total = time.thread_time(), 0
    for number in range(_ADDITIONS):
        total += number
    return time.thread_time() - began
