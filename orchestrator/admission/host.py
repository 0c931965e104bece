"""Free memory of a host and its control groups, and the memory that drivers on it may still use."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from spark_runner.protocol.control_groups import (
    ControlGroup,
    Resource,
    group_name,
    own_groups,
    usable_processors,
    waited_percent,
)
from spark_runner.protocol.proc import PROC, host_memory, memory, stat, uptime
from spark_runner.protocol.process import (
    INCARNATION_VARIABLE,
    MEMORY_VARIABLE,
    RUN_VARIABLE,
    environments,
    value_in,
)

_MAX_DIGITS = 19


@dataclass(frozen=True, slots=True)
class DriverProcesses:
    """All processes of one driver together."""

    declared: int  # bytes that they may use in the end
    used: int  # bytes that they use now, without pages of files
    age: float  # seconds since the first of them started
    group: str  # the memory control group of the first

    @property
    def unused(self) -> int:
        """Declared bytes that are not in use yet, and must not be promised to others."""
        return max(0, self.declared - self.used)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes available without swapping, on the host or in one control group of this process."""

    available: int
    total: int  # bytes in all, in use or not
    group: ControlGroup | None = None

    def free(self, drivers: Mapping[str, DriverProcesses]) -> int:
        """The bytes that remain once every driver here uses what it declares."""
        here = (each for each in drivers.values() if self.group is None or self.group.contains(each.group))
        return self.available - sum(each.unused for each in here)


class Host:
    """Reads /proc and the control groups at each call."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc

    def pressure(self, resource: Resource) -> float | None:
        """See `waited_percent`."""
        return waited_percent(resource, self._proc)

    def processors(self) -> int:
        """See `usable_processors`."""
        return usable_processors(self._proc / "self")

    def memory(self) -> list[Memory]:
        """The memory of the host, and that of each limit of this process; raises OSError, ValueError."""
        limited = (_limited(group) for group in own_groups("memory", self._proc / "self"))
        return [Memory(*host_memory(self._proc)), *(found for found in limited if found is not None)]

    def drivers(self) -> dict[str, DriverProcesses]:
        """The drivers of this host by run and incarnation, started by any worker.

        Only declarations of this user's processes count, because another user could declare any number; each
        driver has a shim that its worker owns. Processes of another container cannot be read.
        """
        found: dict[str, DriverProcesses] = {}
        with contextlib.suppress(OSError, ValueError, IndexError):
            now = uptime(self._proc)
            for folder, key, declared, is_ours in sorted(self._declared(), key=lambda each: not each[-1]):
                with contextlib.suppress(OSError, ValueError, IndexError):  # the process has ended
                    resident, shared = memory(folder.name, self._proc)
                    used = max(0, resident - shared)
                    age = now - stat(folder.name, self._proc).started
                    known = found.get(key)
                    if known is None and is_ours:
                        group = group_name("memory", folder)
                        found[key] = DriverProcesses(declared, used, age, group[0] if group else "/")
                    elif known is not None:
                        found[key] = replace(known, used=known.used + used, age=max(known.age, age))
        return found

    def _declared(self) -> Iterator[tuple[Path, str, int, bool]]:
        """The processes of drivers: folder, driver, declared bytes, and whether this user owns them."""
        for pid, environment in environments(self._proc):
            declared = value_in(environment, MEMORY_VARIABLE)
            if declared.isascii() and declared.isdecimal() and len(declared) < _MAX_DIGITS:
                run, incarnation = (
                    value_in(environment, name) for name in (RUN_VARIABLE, INCARNATION_VARIABLE)
                )
                folder = self._proc / str(pid)
                with contextlib.suppress(OSError):  # the process has ended
                    is_ours = folder.stat().st_uid == os.geteuid()
                    yield folder, f"{run}/{incarnation}", int(declared), is_ours


def _limited(group: ControlGroup) -> Memory | None:
    """The memory that one group leaves; None if it has no limit."""
    limit = group.memory_limit
    if limit is None:
        return None
    try:
        return Memory(max(0, limit - group.memory_used), limit, group)
    except (OSError, ValueError):
        return None
