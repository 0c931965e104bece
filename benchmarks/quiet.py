"""A quiet machine: what is measured begins with idle processors, and what others took of them is told."""

import time

import psutil

_IDLE_PERCENT = 90.0
_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 30.0


def wait_idle() -> None:
    """Until nothing runs that an earlier measurement has left, as compilers in a JVM; at most for a while."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while psutil.cpu_times_percent(_LOOK_SECONDS).idle < _IDLE_PERCENT and time.monotonic() < deadline:
        pass  # the look itself takes its time


class Stolen:
    """The share of this machine that its host has given to others since then, from 0 to 1."""

    def __init__(self) -> None:
        self._began, self._before = time.monotonic(), psutil.cpu_times().steal

    def share(self) -> float:
        """Until now; with more than a few hundredths no figure is worth much."""
        seconds = (time.monotonic() - self._began) * (psutil.cpu_count() or 1)
        return float((psutil.cpu_times().steal - self._before) / seconds)
