"""Whether this host has time and room for work that nobody waits for."""

import os
import shutil
from pathlib import Path

import psutil

_MAX_WAITED_PERCENT = 10.0  # of the last ten seconds in which something had to wait for a processor
_MAX_LOAD = 0.5  # per processor, where the kernel does not tell the above
LEAST_MEMORY = 2 << 30  # bytes; the driver itself takes about 1 GiB
LEAST_DISK = 1 << 30  # bytes; the archive, and what the sample job writes


def host_is_idle(directory: Path) -> bool:
    """Whether processors, memory and the disk of `directory` can be used without harm; raises OSError."""
    if psutil.virtual_memory().available < LEAST_MEMORY or shutil.disk_usage(directory).free < LEAST_DISK:
        return False
    waited = waited_percent()
    if waited is not None:
        return waited <= _MAX_WAITED_PERCENT
    return os.getloadavg()[0] <= _MAX_LOAD * len(os.sched_getaffinity(0))


def waited_percent(pressure: Path = Path("/proc/pressure/cpu")) -> float | None:
    """How much of the last ten seconds work had to wait for a processor; None where the kernel is silent."""
    try:
        first = pressure.read_text(encoding="ascii").splitlines()[0]  # some avg10=1.23 avg60=...
        return float(first.split()[1].removeprefix("avg10="))
    except (OSError, IndexError, ValueError):
        return None
