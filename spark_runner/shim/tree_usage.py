"""The memory and time of all descendants of this process, and whether the kernel killed one for its memory.

Standard library only: the shim needs it.
"""

import contextlib
import os
import resource
import time
from typing import Any

from spark_runner.protocol.control_groups import ControlGroup, oom_kills, own_groups
from spark_runner.protocol.proc import PROC, descendants, rss

LOOK_SECONDS = 1.0
# A search for the processes below a JVM takes milliseconds: each of its threads may have started some.
# The intervals between searches grow, because most processes start in the beginning.
_FIRST_SEARCH_SECONDS, _MAX_SEARCH_SECONDS = 0.5, 5.0


class TreeUsage:
    """Measures the descendants of this process from time to time; an error skips one measurement."""

    def __init__(self) -> None:
        self._group = _memory_group()
        self._kills = _oom_kills(self._group)
        self._known: list[int] = []
        self._due = self._search_due = 0.0
        self._search_seconds = _FIRST_SEARCH_SECONDS
        self._peak = 0

    def look(self) -> float:
        """Measure the memory of all descendants together, if due; returns the seconds until the next time."""
        now = time.monotonic()
        if now >= self._search_due:
            self._known = list(descendants(os.getpid()))
            self._search_due = now + self._search_seconds
            self._search_seconds = min(2 * self._search_seconds, _MAX_SEARCH_SECONDS)
            self._due = now
        if now >= self._due:
            self._due = now + LOOK_SECONDS
            self._peak = max(self._peak, sum(map(rss, self._known)))
        return min(self._due, self._search_due) - now

    def facts(self) -> dict[str, Any]:
        """The facts for the exit file, in bytes and seconds, once all descendants have ended and were reaped.

        Pages that processes share count for each of them, so the peak is an upper bound. A rise and fall
        between two measurements is not in it, unless a single process had more.
        """
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        kills = _oom_kills(self._group)
        facts: dict[str, Any] = {
            "rss_peak_bytes": max(self._peak, ended.ru_maxrss * 1024),
            "cpu_seconds": round(ended.ru_utime + ended.ru_stime, 2),
            # A kill of any process in the group; the exit code of the driver shows whether it was the driver.
            "oom_kill": kills is not None and self._kills is not None and kills > self._kills,
        }
        if self._group is not None and (limit := self._group.memory_limit) is not None:
            facts["cgroup"], facts["cgroup_limit_bytes"] = self._group.name, limit
        return facts


def _memory_group() -> ControlGroup | None:
    """The group in which the memory of this process is counted."""
    return next(iter(own_groups("memory")), None)


def _oom_kills(group: ControlGroup | None) -> int | None:
    """The number of processes in it killed for lack of memory; without a group, of the whole host."""
    if group is not None:
        with contextlib.suppress(OSError, ValueError):
            return group.oom_kills
    with contextlib.suppress(OSError, ValueError):
        return oom_kills(PROC / "vmstat")
    return None
