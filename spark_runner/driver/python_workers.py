"""The memory of the Python workers below the JVM of a driver, from /proc."""

import contextlib
import os

from spark_runner.protocol.proc import PROC, descendants, rss_peak


def workers_rss_peak(jvm: int) -> int:
    """The sum of the peaks of all Python processes of tasks below a JVM, in bytes.

    Each had its peak at its own time, and pages that they share count for each, so it is an upper bound.
    This process, which is below the same JVM, and its children are the driver's.
    """
    own = {os.getpid(), *descendants(os.getpid())}
    if jvm in own:  # a Python program that started its JVM itself
        own = {os.getpid()}
    java, total = _program(jvm), 0
    for pid in descendants(jvm):
        # A process that the JVM has just forked is the JVM again until it loads its own program.
        if pid not in own and _program(pid) != java:
            with contextlib.suppress(OSError, ValueError):  # it has ended
                total += rss_peak(pid)
    return total


def _program(pid: int) -> str:
    """The file that a process runs; empty if it has ended."""
    try:
        return os.readlink(PROC / str(pid) / "exe")  # noqa: PTH115 - a string is compared, not a path
    except OSError:
        return ""
