"""Control groups of a process (cgroups(7)): their limits, and the pressure that the kernel measures (PSI).

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
"""Names the tree of version 2 in place of a controller; that tree also has groups without a controller."""

_NO_LIMIT_BYTES = 1 << 60  # version 1 expresses "no limit" as a number near 2**63
_LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
_USED = {1: "memory.usage_in_bytes", 2: "memory.current"}
# Memory that the kernel reclaims on demand; MemAvailable of the host counts it as available too. Without it a
# container that has read large files would always look full.
_RECLAIMABLE = {
    1: ("total_active_file", "total_inactive_file"),
    2: ("active_file", "inactive_file", "slab_reclaimable"),
}
_KILLS = {1: "memory.oom_control", 2: "memory.events"}


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """One group: its name within the tree, its folder, and the version of the kernel's interface."""

    name: str
    folder: Path
    version: int

    def read(self, file: str) -> str:
        """The text of one of its files; raises OSError."""
        return read(self.folder / file).strip()

    @property
    def memory_limit(self) -> int | None:
        """The memory limit in bytes for all its processes together; None if the group has no limit."""
        try:
            limit = int(self.read(_LIMIT[self.version]))
        except (OSError, ValueError):  # version 2 writes "max"; a root group has no such file
            return None
        return limit if limit < _NO_LIMIT_BYTES else None

    @property
    def memory_used(self) -> int:
        """Bytes that all its processes use and the kernel cannot reclaim; raises OSError, ValueError."""
        used = int(self.read(_USED[self.version]))
        stat = counters(self.folder / "memory.stat")
        return max(0, used - sum(int(stat.get(name, 0)) for name in _RECLAIMABLE[self.version]))

    @property
    def oom_kills(self) -> int:
        """The number of its processes killed by the kernel for lack of memory; raises OSError, ValueError."""
        return oom_kills(self.folder / _KILLS[self.version])

    @property
    def processor_limit(self) -> float | None:
        """The number of processors that its processes may use together; None if the group has no limit."""
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
    """The group name and version of a process, given as its folder in /proc; None without a group.

    On a system with both versions, version 1 wins for each controller that it has.
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
    """The group of a process and those above it, innermost first; the limits of each apply to it.

    Inside a container the name may exist on the host only. The mounted group is then that of the container.
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
    """The number of processes that the kernel killed for lack of memory, from a file with that counter."""
    try:
        return int(counters(path)["oom_kill"])
    except KeyError as error:
        message = f"{path} counts no oom_kill"
        raise ValueError(message) from error


def usable_processors(process: Path = OURS) -> int:
    """The number of processors that this process and its children can use, by affinity and control groups."""
    limits = (group.processor_limit for group in own_groups("cpu", process))
    return max(1, min([len(os.sched_getaffinity(0)), *(math.ceil(limit) for limit in limits if limit)]))


def _mounted(controller: str, version: int, process: Path) -> tuple[str, Path] | None:
    """The group that is mounted as the top of a tree, and its mount point, from proc_pid_mountinfo(5)."""
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
    """The share of the last ten seconds in which a task here waited for a resource; None when unknown.

    The value is that of the nearest control group that limits the resource, because only the processes below
    it share that limit. Without a limit, or where groups have no pressure (version 1), it is that of the
    host. A kernel without PSI, or with `psi=0`, reports none.
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
