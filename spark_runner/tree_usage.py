"""What all processes below one have taken, and whether the kernel ended one of them for lack of memory.

Standard library only: the shim needs it.
"""

import contextlib
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spark_runner.control_groups import ControlGroup, own_groups, read
from spark_runner.proc import rss

LOOK_SECONDS = 1.0
# To find the processes below a JVM takes milliseconds, as each of its threads may have started some.
# It is done at ever longer intervals: most are started in the beginning.
_FIRST_SEARCH_SECONDS, _MAX_SEARCH_SECONDS = 0.5, 5.0
_KILLS = {1: "memory.oom_control", 2: "memory.events"}


class TreeUsage:
    """Looks at the descendants of this process now and then; an error in looking costs the look alone."""

    def __init__(self) -> None:
        self._group = _memory_group()
        self._kills = _oom_kills(self._group)
        self._known: list[int] = []
        self._due = self._search_due = 0.0
        self._search_seconds = _FIRST_SEARCH_SECONDS
        self._peak = 0

    def look(self) -> float:
        """Take the memory of all descendants together, if that is due; returns the seconds until it is."""
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
        """For the exit file: bytes and seconds; all descendants have ended and were reaped.

        Pages that processes share count for each of them, so that the peak is an upper bound; what rose and
        fell between two looks is not in it, unless a single process had more.
        """
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        kills = _oom_kills(self._group)
        facts: dict[str, Any] = {
            "rss_peak_bytes": max(self._peak, ended.ru_maxrss * 1024),
            "cpu_seconds": round(ended.ru_utime + ended.ru_stime, 2),
            # Of anything in the group: whether it was the driver tells its exit code.
            "oom_kill": kills is not None and self._kills is not None and kills > self._kills,
        }
        if self._group is not None and (limit := self._group.memory_limit) is not None:
            facts["cgroup"], facts["cgroup_limit_bytes"] = self._group.name, limit
        return facts


def _memory_group() -> ControlGroup | None:
    """The group in which the memory of this process is counted."""
    return next(iter(own_groups("memory")), None)


def _oom_kills(group: ControlGroup | None) -> int | None:
    """How many processes the kernel has ended in it for lack of memory; without a group, in all."""
    path = None if group is None else group.folder / _KILLS[group.version]
    for found in filter(None, (path, Path("/proc/vmstat"))):
        with contextlib.suppress(OSError, ValueError):
            return _counter(found, "oom_kill")
    return None


def descendants(parent: int) -> Iterator[int]:
    """All processes below one, as far as they can be seen at this moment."""
    left = [parent]
    while left:
        pid = left.pop()
        for child in _children(pid):
            yield child
            left.append(child)


def _children(pid: int) -> Iterator[int]:
    # Each thread has a list of those that it has started: much less to read than all processes of the host.
    with contextlib.suppress(OSError):  # it has ended meanwhile
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names, not Path objects
            with contextlib.suppress(OSError):
                yield from map(int, read(Path(f"/proc/{pid}/task/{thread}/children")).split())


def _counter(path: Path, name: str) -> int:
    for line in read(path).splitlines():
        if line.startswith(f"{name} "):
            return int(line.split()[1])
    message = f"{path} counts no {name}"
    raise ValueError(message)
