"""What all processes below one have taken, and whether the kernel ended one of them for lack of memory.

Standard library only: the shim needs it.
"""

import contextlib
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spark_runner.proc import rss

LOOK_SECONDS = 1.0
# To find the processes below a JVM takes milliseconds, as each of its threads may have started some.
# It is done at ever longer intervals: most are started in the beginning.
_FIRST_SEARCH_SECONDS, _MAX_SEARCH_SECONDS = 0.5, 5.0
_NO_LIMIT_BYTES = 1 << 60  # the first version says "no limit" by a number near 2**63


class TreeUsage:
    """Looks at the descendants of this process now and then; an error in looking costs the look alone."""

    def __init__(self) -> None:
        self._cgroup = Cgroup.own()
        self._kills = self._cgroup.kills()
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
        kills, limit = self._cgroup.kills(), self._cgroup.limit()
        facts: dict[str, Any] = {
            "rss_peak_bytes": max(self._peak, ended.ru_maxrss * 1024),
            "cpu_seconds": round(ended.ru_utime + ended.ru_stime, 2),
            # Of anything in the group: whether it was the driver tells its exit code.
            "oom_kill": kills is not None and self._kills is not None and kills > self._kills,
        }
        if limit is not None:
            facts["cgroup"], facts["cgroup_limit_bytes"] = self._cgroup.name, limit
        return facts


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The memory control group that this process is in: its folder, where there is one, and its version."""

    name: str
    folder: Path | None
    version: int

    @classmethod
    def own(cls) -> "Cgroup":
        """The group of this process, by cgroups(7)."""
        with contextlib.suppress(OSError, ValueError):
            groups = dict[str, str]()
            for line in _read(Path("/proc/self/cgroup")).splitlines():
                _, controllers, name = line.split(":", 2)
                groups |= dict.fromkeys(controllers.split(","), name)
            # In a mixed system the memory is where the first version has it.
            version, controller = (1, "memory") if "memory" in groups else (2, "")
            if controller in groups:
                folder = _mounted(version, groups[controller])
                return cls(groups[controller], folder, version)
        return cls("", None, 0)

    def kills(self) -> int | None:
        """How many processes the kernel has ended in it for lack of memory; without a group, in all."""
        file = {1: "memory.oom_control", 2: "memory.events"}.get(self.version)
        for path in (self.folder / file if self.folder and file else None, Path("/proc/vmstat")):
            if path is not None:
                with contextlib.suppress(OSError, ValueError):
                    return _counter(path, "oom_kill")
        return None

    def limit(self) -> int | None:
        """Bytes that it may have; None without a limit of its own."""
        if self.folder is None:
            return None
        file = "memory.limit_in_bytes" if self.version == 1 else "memory.max"
        with contextlib.suppress(OSError, ValueError):
            value = int(_read(self.folder / file))
            return value if value < _NO_LIMIT_BYTES else None
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
                yield from map(int, _read(Path(f"/proc/{pid}/task/{thread}/children")).split())


def _mounted(version: int, name: str) -> Path | None:
    """The folder of a control group, by proc_pid_mountinfo(5)."""
    for line in _read(Path("/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        kind, *_, options = after.split()
        is_it = kind == "cgroup2" if version == 2 else kind == "cgroup" and "memory" in options.split(",")  # noqa: PLR2004
        if is_it:
            inner = name[len(root) :] if root != "/" and name.startswith(root) else name
            folder = Path(mount, inner.lstrip("/"))
            return folder if folder.is_dir() else Path(mount)
    return None


def _counter(path: Path, name: str) -> int:
    for line in _read(path).splitlines():
        if line.startswith(f"{name} "):
            return int(line.split()[1])
    message = f"{path} counts no {name}"
    raise ValueError(message)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
