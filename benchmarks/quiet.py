"""A quiet machine: what is measured begins with idle processors, and what others took of them is told."""

import time
from collections.abc import Sequence
from pathlib import Path

_IDLE_SHARE = 0.9
_LOOK_SECONDS = 0.5
_PATIENCE_SECONDS = 30.0
_IDLE, _STOLEN = 3, 7  # fields of the first line of /proc/stat, in proc_stat(5)
_FIELDS = 8  # time of guests is in that of their owner, too


def wait_idle() -> None:
    """Until nothing runs that an earlier measurement has left, as compilers in a JVM; at most for a while."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    before = _ticks()
    while time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
        now = _ticks()
        if _share(before, now, _IDLE) >= _IDLE_SHARE:
            return
        before = now


class Stolen:
    """The share of this machine that its host has given to others since then, from 0 to 1."""

    def __init__(self) -> None:
        self._since = _ticks()

    def share(self) -> float:
        """Until now; with more than a few hundredths no figure is worth much."""
        return _share(self._since, _ticks(), _STOLEN)


def _ticks() -> list[int]:
    line = Path("/proc/stat").read_text("ascii").partition("\n")[0]
    return [int(word) for word in line.split()[1 : _FIELDS + 1]]


def _share(before: Sequence[int], now: Sequence[int], field: int) -> float:
    spent = [b - a for a, b in zip(before, now, strict=True)]
    return spent[field] / max(1, sum(spent))
