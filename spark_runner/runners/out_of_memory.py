"""Recognizes a driver that the kernel ended for lack of memory, from the measurements of its shim."""

import signal
from collections.abc import Mapping
from typing import Any

from spark_runner.runners.base import Failure

_KILLED = 128 + signal.SIGKILL
_MIB = 1 << 20


def memory_failure(exit_code: int | None, usage: Mapping[str, Any] | None) -> Failure | None:
    """The failure of a driver that got SIGKILL while the kernel killed for memory; None for all others."""
    if exit_code != _KILLED or usage is None or not usage.get("oom_kill"):
        return None
    peak, limit = usage.get("rss_peak_bytes"), usage.get("cgroup_limit_bytes")
    had = f" (its processes used at most {peak // _MIB:,} MiB)" if isinstance(peak, int) else ""
    if isinstance(limit, int):
        cause = f"the limit of its control group {usage.get('cgroup')} is {limit // _MIB:,} MiB"
        remedy = "Raise the limit of the group (for a service: MemoryMax=)"
    else:
        cause, remedy = "the host had none left", "Give the host more memory"
    message = (
        f"the kernel ended its driver for lack of memory{had}: {cause}. {remedy}, run fewer jobs at once "
        "(slots), or give this job less: spark.driver.memory is only the heap; Python and the JVM itself "
        "need memory on top of it"
    )
    return Failure("memory", "OutOfMemoryKill", message)
