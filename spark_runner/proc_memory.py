"""Memory and processor time of processes of this host, from /proc."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def rss_peak(pid: int) -> int:
    """Bytes of memory that a process has had resident at most; raises OSError, ValueError."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    message = f"the kernel does not tell the peak of process {pid}"
    raise ValueError(message)


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and of its children that have ended; raises OSError."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    fields = stat.rpartition(")")[2].split()  # from field 3 of proc_pid_stat(5) on
    return sum(int(field) for field in fields[11:15]) / _TICKS_PER_SECOND
