"""A quiet machine: waits for idle processors before a measurement, and reports the stolen processor time."""

import time

import psutil

_IDLE_PERCENT = 90.0
_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 30.0


def wait_idle() -> None:
    """Wait, up to a limit, until processes of an earlier measurement are idle, such as compilers of a JVM."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while psutil.cpu_times_percent(_LOOK_SECONDS).idle < _IDLE_PERCENT and time.monotonic() < deadline:
        pass  # cpu_percent itself waits


class Stolen:
    """The share of processor time that the host has given to other machines, from 0 to 1."""

    def __init__(self) -> None:
        self._began, self._before = time.monotonic(), psutil.cpu_times().steal

    def share(self) -> float:
        """The share since the start; figures with more than a few hundredths are not reliable."""
        seconds = (time.monotonic() - self._began) * (psutil.cpu_count() or 1)
        return float((psutil.cpu_times().steal - self._before) / seconds)
