"""The processes and the memory of this host, from /proc. Standard library only: the shim needs it.

`proc` is the mount point. A process that has ended, or whose files this user may not read, raises OSError.
Contents of an unknown form raise ValueError or IndexError.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def read(path: Path) -> str:
    """The text of a file in /proc or of a control group; raises OSError."""
    return path.read_text(encoding="utf-8", errors="replace")


def counters(path: Path) -> dict[str, str]:
    """The values by name of a file with a name and a number in each line; raises OSError."""
    return dict(line.partition(" ")[::2] for line in read(path).splitlines())


# ---------------------------------------------------------------------- this host
def boot_id() -> str:
    """The id that the kernel generated at boot."""
    return read(PROC / "sys/kernel/random/boot_id").strip()


def pid_namespace() -> str:
    """The PID namespace of this process: a process id is valid only among the processes in it."""
    return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - its target is no path: `pid:[4026531836]`


def uptime(proc: Path = PROC) -> float:
    """Seconds since boot."""
    return float(read(proc / "uptime").split()[0])


def host_memory(proc: Path = PROC) -> tuple[int, int]:
    """The available memory without swapping, and the total memory, in bytes; raises OSError, ValueError."""
    values = dict(line.partition(":")[::2] for line in _lines(proc / "meminfo"))
    try:
        available, total = (int(values[name].split()[0]) * 1024 for name in ("MemAvailable", "MemTotal"))
    except (LookupError, ValueError) as error:
        message = "the kernel does not report the available memory"
        raise ValueError(message) from error
    return available, total


# ---------------------------------------------------------------------- one process
@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The fields of one process from proc_pid_stat(5)."""

    state: str
    parent: int
    flags: int
    cpu_seconds: float  # of it and of its children that have ended
    start: int  # clock ticks since boot

    @property
    def started(self) -> float:
        """Seconds from boot to its start."""
        return self.start / _TICKS_PER_SECOND


def stat(pid: int | str, proc: Path = PROC) -> ProcessStat:
    """The state and counters of a process."""
    data = (proc / str(pid) / "stat").read_bytes()
    fields = data.rpartition(b")")[2].split()  # the name in brackets may hold blanks and brackets
    cpu = sum(map(int, fields[11:15])) / _TICKS_PER_SECOND
    return ProcessStat(fields[0].decode(), int(fields[1]), int(fields[6]), cpu, int(fields[19]))


def memory(pid: int | str, proc: Path = PROC) -> tuple[int, int]:
    """The resident memory of a process, and its part that is shared with files, in bytes."""
    resident, shared = map(int, read(proc / str(pid) / "statm").split()[1:3])
    return resident * _PAGE_BYTES, shared * _PAGE_BYTES


def rss(pid: int) -> int:
    """The resident memory of a process in bytes; 0 if the process has ended."""
    with contextlib.suppress(OSError, ValueError):
        return memory(pid)[0]
    return 0


def status_field(pid: int | str, name: str) -> str:
    """One field of proc_pid_status(5); raises OSError, and ValueError if the kernel has no such field."""
    for line in _lines(PROC / str(pid) / "status"):
        found, _, value = line.partition(":")
        if found == name:
            return value.strip()
    message = f"the kernel does not report {name} of process {pid}"
    raise ValueError(message)


def rss_peak(pid: int) -> int:
    """The peak resident memory of a process in bytes; raises OSError, ValueError."""
    return int(status_field(pid, "VmHWM").split()[0]) * 1024


# ---------------------------------------------------------------------- families
def children(parent: int) -> list[int]:
    """The direct children of a process, found among all processes of the host."""
    found = []
    for entry in os.listdir(PROC):  # noqa: PTH208  # names, not Path objects, for hundreds of processes
        with contextlib.suppress(OSError, IndexError):  # it ended meanwhile
            if entry.isdecimal() and stat(entry).parent == parent:
                found.append(int(entry))
    return found


def descendants(parent: int) -> Iterator[int]:
    """All descendants of a process that are visible at this moment."""
    left = [parent]
    while left:
        for child in _started_by(left.pop()):
            yield child
            left.append(child)


def _started_by(pid: int) -> Iterator[int]:
    # Each thread lists the processes that it has started: much less to read than all processes of the host.
    with contextlib.suppress(OSError):  # it has ended meanwhile
        for thread in os.listdir(PROC / str(pid) / "task"):  # noqa: PTH208 - names, not Path objects
            with contextlib.suppress(OSError):
                yield from map(int, read(PROC / f"{pid}/task/{thread}/children").split())


def _lines(path: Path) -> list[str]:
    return read(path).splitlines()
