"""The clock for durations that guard against dead or suspended machines."""

import time


def boottime() -> float:
    """Seconds since the machine was booted, those in which it was suspended among them.

    `time.monotonic` stands still meanwhile: whoever was suspended would believe to be in time
    (clock_gettime(2): CLOCK_BOOTTIME).
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boottime_ns() -> int:
    """The same in nanoseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
