"""How much memory a new process would find here: on this host, and in the control group that binds us."""

from collections.abc import Iterator
from pathlib import Path

import psutil

_GROUPS = Path("/sys/fs/cgroup")
_OURS = Path("/proc/self/cgroup")
# What the kernel takes back when memory is needed, as MemAvailable of the host counts it too. Without it a
# container that has read large files would look full for ever.
_RECLAIMABLE = ("active_file", "inactive_file", "slab_reclaimable")


def available_memory() -> int:
    """Bytes that can be had without swapping: the host's MemAvailable, less where a cgroup allows less."""
    return min([psutil.virtual_memory().available, *group_memory()])


def group_memory(groups: Path = _GROUPS, ours: Path = _OURS) -> Iterator[int]:
    """Bytes left below the limit of each cgroup (version 2) that binds this process; nothing without one.

    A limit binds all groups below its own. Inside a container the path of our group may be one that only the
    host has: then what is mounted at the top is the container's own.
    """
    try:
        lines = ours.read_text("utf-8").splitlines()
    except OSError:
        return
    path = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if path is None:
        return
    group = groups / path
    for folder in (group, *group.parents):
        if not folder.is_relative_to(groups):
            return
        left = _left(folder)
        if left is not None:
            yield left


def _left(group: Path) -> int | None:
    """Bytes left in one group; None where it has no limit, or is not there."""
    try:
        limit = (group / "memory.max").read_text("utf-8").strip()
        if limit == "max":
            return None
        used = int((group / "memory.current").read_text("utf-8"))
        stat = dict(line.split() for line in (group / "memory.stat").read_text("utf-8").splitlines())
        reclaimable = sum(int(stat.get(name, 0)) for name in _RECLAIMABLE)
        return max(0, int(limit) - max(0, used - reclaimable))
    except (OSError, ValueError):
        return None
