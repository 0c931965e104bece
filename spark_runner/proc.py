"""What /proc tells of processes of this host. Standard library only: the shim needs it."""

import contextlib
import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def pid_namespace() -> str:
    """The PID namespace of this process: a process id means something to the processes in it alone."""
    return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - its target is no path: `pid:[4026531836]`


def stat_fields(pid: int | str) -> list[str]:
    """Fields 3 and on of /proc/<pid>/stat; field 2, the name, may hold blanks and brackets."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def start_ticks(pid: int) -> int:
    """When the process started, in clock ticks since boot: field 22 of proc_pid_stat(5)."""
    return int(stat_fields(pid)[19])


def children(parent: int) -> list[int]:
    """The direct children of a process."""
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208  # names, not Path objects, for hundreds of processes
        with contextlib.suppress(OSError, IndexError):  # it ended while we looked
            if entry.isdecimal() and int(stat_fields(entry)[1]) == parent:
                found.append(int(entry))
    return found


def rss(pid: int) -> int:
    """Bytes of memory that a process has resident now; 0 when it has ended."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    return 0


def rss_peak(pid: int) -> int:
    """Bytes of memory that a process has had resident at most; raises OSError, ValueError."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    message = f"the kernel does not tell the peak of process {pid}"
    raise ValueError(message)


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and of its children that have ended; raises OSError."""
    return sum(int(field) for field in stat_fields(pid)[11:15]) / _TICKS_PER_SECOND
