"""A driver of this host that the kernel has ended for lack of memory, told from what its shim measured."""

import signal
from collections.abc import Mapping
from typing import Any

from spark_runner.runners.base import Failure

_KILLED = 128 + signal.SIGKILL
_MIB = 1 << 20


def memory_failure(exit_code: int | None, usage: Mapping[str, Any] | None) -> Failure | None:
    """The failure of a driver that was killed while the kernel killed for memory; None for all others."""
    if exit_code != _KILLED or usage is None or not usage.get("oom_kill"):
        return None
    peak, limit = usage.get("rss_peak_bytes"), usage.get("cgroup_limit_bytes")
    had = f" (its processes had {peak // _MIB:,} MiB at most)" if isinstance(peak, int) else ""
    if isinstance(limit, int):
        what = f"its control group {usage.get('cgroup')} may have {limit // _MIB:,} MiB"
        remedy = "raise the limit of the group, for a service MemoryMax="
    else:
        what, remedy = "the host had none left", "give the host more memory"
    message = (
        f"the kernel ended its driver for lack of memory{had}: {what}. {remedy[0].upper()}{remedy[1:]}, let "
        "fewer jobs run at once (slots), or give this one less: spark.driver.memory is the heap alone, and "
        "Python and the JVM itself come on top"
    )
    return Failure("memory", "OutOfMemoryKill", message)
