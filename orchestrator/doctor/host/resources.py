"""Memory, disks and open files of this host, against what its slots need."""

import os
import resource
from collections.abc import Iterator

from orchestrator.admission.host import Host, Memory
from orchestrator.config.directories import existing_above
from orchestrator.config.settings import Settings
from orchestrator.config.spark_defaults import pool_spark
from orchestrator.doctor.findings import Finding, FindingKind
from orchestrator.doctor.host.directories import temporary_directory
from orchestrator.model.errors import SettingsError
from orchestrator.model.spark import Spark
from queues import DEFAULT_POOL
from spark_runner.protocol.sizing import driver_bytes

_MIB, _GIB = 1 << 20, 1 << 30
_LEAST_DISK = _GIB  # class archives take 800 MB, a run takes some MB besides what Spark spills
_LEAST_FILES = 10_000  # inodes
_LEAST_OPEN_FILES = 1024  # of a process: the usual limit; a driver opens some hundred


def check_memory(settings: Settings) -> Iterator[Finding]:
    """Memory for the drivers of all slots, on the host and within the limits of its control groups."""
    try:
        least = min(Host().memory(), key=lambda memory: memory.available)
        tightest = min(Host().memory(), key=lambda memory: memory.total)
        driver = driver_bytes(pool_spark(settings.spark)(DEFAULT_POOL, Spark()).properties)
    except (OSError, ValueError, SettingsError):  # /proc and the settings have findings of their own
        return
    need = settings.slots * driver
    remedy = 'free memory, lower `slots`, or lower `spark."*".driver.memory` in the settings'
    if least.available < driver:
        what = (
            f"{_gib(least.available)} are free {_where(least)}, and a driver needs {_gib(driver)} of memory"
        )
        yield Finding.of(FindingKind.LITTLE_MEMORY, _path(least), what, remedy)
    elif tightest.total < need:
        what = (
            f"there are {_gib(tightest.total)} of memory {_where(tightest)}, and {settings.slots:,} drivers "
            f"of {_gib(driver)} need {_gib(need)}"
        )
        yield Finding.of(FindingKind.LITTLE_MEMORY, _path(tightest), what, remedy)
    else:
        what = f"{_gib(least.available)} of memory are free {_where(least)}; a driver needs {_gib(driver)}"
        yield Finding.of(FindingKind.THIS_HOST, _path(least), what, "")


def check_disks(settings: Settings) -> Iterator[Finding]:
    """Free space and free files where runs, logs, archives of classes and temporary files are written."""
    used = {"state_dir": settings.state_dir}
    if (temporary := temporary_directory()) is not None:
        used["TMPDIR"] = temporary
    used["logs.dir"] = settings.logs.dir or settings.logs_dir
    if settings.class_archives:
        used["cache_dir"] = settings.cache_dir
    seen = set[int]()
    for name, directory in used.items():
        try:
            there = existing_above(directory)
            device, found = there.stat().st_dev, os.statvfs(there)
        except OSError:  # a directory that cannot be used is another finding
            continue
        if device in seen:
            continue
        seen.add(device)
        free = found.f_bavail * found.f_frsize
        remedy = f"free space there, or set {name} to a directory on a larger disk"
        if free < _LEAST_DISK:
            what = f"{_gib(free)} are free on the disk of {name}; runs and logs need {_gib(_LEAST_DISK)}"
            yield Finding.of(FindingKind.LITTLE_DISK, str(directory), what, remedy)
        elif found.f_files and found.f_favail < _LEAST_FILES:
            what = f"the disk of {name} has room for {found.f_favail:,} more files"
            yield Finding.of(FindingKind.LITTLE_DISK, str(directory), what, remedy)
        else:
            what = f"{_gib(free)} are free on the disk of {name}"
            yield Finding.of(FindingKind.THIS_HOST, str(directory), what, "")


def check_open_files(_settings: Settings) -> Iterator[Finding]:
    """The limit of open files, which drivers inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _LEAST_OPEN_FILES:
        what = f"a process may open {soft:,} files (hard limit {hard:,}); Spark needs {_LEAST_OPEN_FILES:,}"
        remedy = f"`ulimit -n {max(soft, 65_536):d}` in the shell, LimitNOFILE= in a unit of systemd"
        yield Finding.of(FindingKind.FEW_OPEN_FILES, "ulimit -n", what, remedy)


def _gib(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / _MIB:.0f} MiB"


def _where(memory: Memory) -> str:
    return "on this host" if memory.group is None else f"in the control group {memory.group.name}"


def _path(memory: Memory) -> str:
    return "/proc/meminfo" if memory.group is None else str(memory.group.folder)
