"""What keeps a worker from taking more than its host can bear."""

import os
import threading
import time
from collections.abc import Callable

from loguru import logger

from orchestrator.admission.host_memory import available_memory
from orchestrator.models.limits import Limits
from orchestrator.models.memory import memory_bytes
from orchestrator.models.spark import Spark

_LOAD_SECONDS = 1.0  # the kernel renews the load average every five seconds

_MIB, _GIB = 1 << 20, 1 << 30
_DEFAULT_HEAP = _GIB  # spark.driver.memory
# spark.driver.memoryOverhead: threads, code, buffers, the Python process; docs/configuration of Spark 4.
_LEAST_OVERHEAD, _OVERHEAD_FACTOR = 384 * _MIB, 0.1


class Guard:
    """Says when this host should take nothing, and which driver has no room on it. Thread-safe.

    The load is the kernel's average over a minute: it lags. A worker that starts many drivers at once is
    stopped only when they have been busy for some time, and one whose drivers have ended waits until the
    average has come down. It is the load of the whole host, also inside a container. Memory counts once it
    is used: drivers that start in the same moment do not see each other's.
    """

    def __init__(
        self,
        limits: Callable[[], Limits],
        *,
        load: Callable[[], float] = lambda: os.getloadavg()[0],
        cores: Callable[[], int] = lambda: len(os.sched_getaffinity(0)),
        memory: Callable[[], int] = available_memory,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._load, self._cores, self._memory = limits, load, cores, memory
        self._clock = clock
        self._guard = threading.Lock()
        self._known: tuple[float, float, int] | None = None  # read when, load, cores
        self._loaded = False  # as was told last
        self._short: int | None = None  # bytes of the smallest driver that had no room, until there is

    def refusal(self) -> str | None:
        """Why nothing may be taken now; None when something may. Cheap: the load is read once a second."""
        limit = self._limits().load_limit
        with self._guard:
            now = self._clock()
            if self._known is None or now - self._known[0] >= _LOAD_SECONDS:
                self._known = (now, self._load(), self._cores())
            _, load, cores = self._known
            words = None
            if limit and load > limit * cores:
                words = f"the load of this host is {load:.2f}, above {limit:g} for each of {cores} cores"
            if (words is not None) is not self._loaded:
                self._loaded = words is not None
                if words:
                    logger.warning("nothing is taken: {}", words)
                else:
                    logger.info("jobs are taken again: the load of this host is {:.2f}", load)
            return words

    def fits(self, spark: Spark) -> str | None:
        """Why a driver of this kind has no room here now; None when it has, or will be elsewhere."""
        if spark.target.deploy_mode == "cluster":
            return None
        enabled, needed = self._limits().memory_guard, driver_bytes(spark)
        with self._guard:
            free = self._memory() if enabled else None
            if self._short is not None and (free is None or free >= self._short):
                self._short = None
                logger.info("there is room for drivers again: {}", _told(free))
            if free is None or free >= needed:
                return None
            words = f"its driver needs {needed / _GIB:.1f} GiB of memory, {_told(free)}"
            if self._short is None:
                logger.warning("a job is not taken: {}", words)
            # Of the smallest: what has room for a small driver and none for a large one is told once each.
            self._short = needed if self._short is None else min(self._short, needed)
            return words


def driver_bytes(spark: Spark) -> int:
    """Bytes that a driver may come to use: its heap, and what Spark counts on beside it."""
    conf = spark.properties
    heap = memory_bytes(conf.get("spark.driver.memory", "")) or _DEFAULT_HEAP
    beside = memory_bytes(conf.get("spark.driver.memoryOverhead", ""))
    if beside is None:
        beside = max(_LEAST_OVERHEAD, int(heap * _OVERHEAD_FACTOR))
    return heap + beside


def _told(free: int | None) -> str:
    return "the guard is off" if free is None else f"{free / _GIB:.1f} GiB are free"
