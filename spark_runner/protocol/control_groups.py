"""The control groups of a process, by cgroups(7): their limits, and pressure as the kernel measures it (PSI).

Standard library only: the shim needs it.
"""

import contextlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from spark_runner.protocol.proc import PROC, counters, read

OURS = PROC / "self"
UNIFIED = ""
"""In place of a controller: the tree of the second version, which also has groups without a controller."""

_NO_LIMIT_BYTES = 1 << 60  # the first version says "no limit" by a number near 2**63
_LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
_USED = {1: "memory.usage_in_bytes", 2: "memory.current"}
# What the kernel takes back when memory is needed, as MemAvailable of the host counts it too. Without it a
# container that has read large files would look full for ever.
_RECLAIMABLE = {
    1: ("total_active_file", "total_inactive_file"),
    2: ("active_file", "inactive_file", "slab_reclaimable"),
}
_KILLS = {1: "memory.oom_control", 2: "memory.events"}


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """One group: its name within the tree, its folder, the version of the kernel's interface."""

    name: str
    folder: Path
    version: int

    def read(self, file: str) -> str:
        """The text of one of its files; raises OSError."""
        return read(self.folder / file).strip()

    @property
    def memory_limit(self) -> int | None:
        """Bytes that all its processes together may have; None without a limit of its own."""
        try:
            limit = int(self.read(_LIMIT[self.version]))
        except (OSError, ValueError):  # the second version says "max"; a root group has no such file
            return None
        return limit if limit < _NO_LIMIT_BYTES else None

    @property
    def memory_used(self) -> int:
        """Bytes that all its processes use and the kernel cannot take back; raises OSError, ValueError."""
        used = int(self.read(_USED[self.version]))
        stat = counters(self.folder / "memory.stat")
        return max(0, used - sum(int(stat.get(name, 0)) for name in _RECLAIMABLE[self.version]))

    @property
    def oom_kills(self) -> int:
        """How many processes the kernel has ended in it for lack of memory; raises OSError, ValueError."""
        return oom_kills(self.folder / _KILLS[self.version])

    @property
    def processor_limit(self) -> float | None:
        """Processors that all its processes together may keep busy; None without a limit of its own."""
        try:
            if self.version == 1:
                quota, period = self.read("cpu.cfs_quota_us"), self.read("cpu.cfs_period_us")
            else:
                quota, period = self.read("cpu.max").split()
            return int(quota) / int(period) if int(quota) > 0 else None
        except (OSError, ValueError, ZeroDivisionError):
            return None

    def contains(self, name: str) -> bool:
        """Whether the group of this name is this one or below it."""
        return name == self.name or name.startswith(self.name.rstrip("/") + "/")


def group_name(controller: str, process: Path = OURS) -> tuple[str, int] | None:
    """The name of the group of a process, given as its folder in /proc, and the version; None without one.

    In a mixed system a controller is where the first version has it.
    """
    names = dict[str, str]()
    try:
        for line in read(process / "cgroup").splitlines():
            _, controllers, name = line.split(":", 2)
            names |= dict.fromkeys(controllers.split(","), name)
    except (OSError, ValueError):
        return None
    if controller != UNIFIED and controller in names:
        return names[controller], 1
    return (names[UNIFIED], 2) if UNIFIED in names else None


def own_groups(controller: str, process: Path = OURS) -> list[ControlGroup]:
    """The group of a process and those above it, innermost first: the limits of each bind it.

    Inside a container the name may be one that only the host has: then what is mounted is the container's.
    """
    found = group_name(controller, process)
    if found is None:
        return []
    name, version = found
    mounted = _mounted(controller, version, process)
    if mounted is None:
        return []
    root, mount = mounted
    parts = [part for part in name.removeprefix(root.rstrip("/")).split("/") if part]
    while parts and (".." in parts or not mount.joinpath(*parts).is_dir()):
        parts.pop()
    groups = []
    for depth in range(len(parts), -1, -1):
        above = PurePosixPath(root, *parts[:depth])
        groups.append(ControlGroup(str(above), mount.joinpath(*parts[:depth]), version))
    return groups


def oom_kills(path: Path) -> int:
    """How many processes the kernel has ended for lack of memory, by a file with a counter of them."""
    try:
        return int(counters(path)["oom_kill"])
    except KeyError as error:
        message = f"{path} counts no oom_kill"
        raise ValueError(message) from error


def usable_processors(process: Path = OURS) -> int:
    """How many processors this process and what it starts can keep busy, by affinity and control groups."""
    limits = (group.processor_limit for group in own_groups("cpu", process))
    return max(1, min([len(os.sched_getaffinity(0)), *(math.ceil(limit) for limit in limits if limit)]))


def _mounted(controller: str, version: int, process: Path) -> tuple[str, Path] | None:
    """The group at the top of a tree as it is mounted, and where that is, by proc_pid_mountinfo(5)."""
    with contextlib.suppress(OSError):
        for line in read(process / "mountinfo").splitlines():
            before, _, after = line.partition(" - ")
            root, mount = before.split()[3:5]
            kind, *_, options = after.split()
            is_first = kind == "cgroup" and controller in options.split(",")
            if is_first if version == 1 else kind == "cgroup2":
                return root, Path(mount)
    return None


Resource = Literal["cpu", "memory"]


def waited_percent(resource: Resource, proc: Path = PROC) -> float | None:
    """Share of the last ten seconds in which a task here waited for a resource; None when unknown.

    The nearest control group that limits the resource is measured, because only processes below it share its
    limit; without a limit, or where groups have no pressure (version 1), the host is. A kernel without PSI,
    or with `psi=0`, reports nothing.
    """
    for file in _files(resource, proc):
        try:
            first = read(file).splitlines()[0]  # some avg10=1.23 avg60=...
            return float(first.split()[1].removeprefix("avg10="))
        except (OSError, IndexError, ValueError):
            continue
    return None


def _files(resource: Resource, proc: Path) -> Iterator[Path]:
    for group in own_groups(UNIFIED, proc / "self"):
        if _limits(group, resource):
            yield group.folder / f"{resource}.pressure"
            break
    yield proc / "pressure" / resource


def _limits(group: ControlGroup, resource: Resource) -> bool:
    return (group.processor_limit if resource == "cpu" else group.memory_limit) is not None
