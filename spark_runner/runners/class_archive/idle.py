"""Decides whether this host has capacity for background work."""

import os
import shutil
from pathlib import Path

from spark_runner.control_groups import usable_processors
from spark_runner.pressure import waited_percent
from spark_runner.proc import host_memory

_MAX_WAITED_PERCENT = 10.0  # of the last ten seconds in which some process waited for a processor
_MAX_LOAD = 0.5  # per processor; for kernels that do not report the above
LEAST_MEMORY = 2 << 30  # bytes; the driver itself takes about 1 GiB
LEAST_DISK = 1 << 30  # bytes; for the archive and the files of the sample job


def host_is_idle(directory: Path) -> bool:
    """Whether processors, memory and the disk of `directory` have spare capacity; raises OSError."""
    try:
        available, _ = host_memory()
    except ValueError:  # a kernel that does not say
        return False
    if available < LEAST_MEMORY or shutil.disk_usage(directory).free < LEAST_DISK:
        return False
    waited = waited_percent("cpu")
    if waited is not None:
        return waited <= _MAX_WAITED_PERCENT
    return os.getloadavg()[0] <= _MAX_LOAD * usable_processors()
