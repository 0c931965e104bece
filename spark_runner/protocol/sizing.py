"""The Spark properties that decide the size of a run, and the memory that a driver may use."""

import re
from collections.abc import Mapping

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_UNITS = {"": _MIB, "b": 1, "k": _KIB, "m": _MIB, "g": _GIB, "t": 1 << 40, "p": 1 << 50}
_SIZE = re.compile(r"(\d{1,18})(b|[kmgtp]?)b?", re.IGNORECASE | re.ASCII)
_DEFAULT_HEAP = _GIB  # spark.driver.memory

LEAST_HEAP = 512 * _MIB
"""The least that is given to a JVM: Spark refuses less than 450 MiB."""

LEAST_OVERHEAD = 384 * _MIB
"""What Spark gives at least beside a heap: for threads, code, buffers, and Python."""

OVERHEAD_FACTOR = 0.1
"""Of the heap, with the minimum above; docs/configuration of Spark 4."""


def memory_bytes(text: str) -> int | None:
    """The bytes of an amount in Spark's notation, MiB without a unit; None for text that Spark refuses."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else int(match[1]) * _UNITS[match[2].lower()]


def default_overhead(heap: int, factor: float = OVERHEAD_FACTOR) -> int:
    """The bytes beside a heap, where no property says how many."""
    return max(LEAST_OVERHEAD, int(heap * factor))


def driver_bytes(conf: Mapping[str, str]) -> int:
    """The bytes that a driver may use: its heap plus Spark's overhead."""
    heap = memory_bytes(conf.get("spark.driver.memory", "")) or _DEFAULT_HEAP
    beside = memory_bytes(conf.get("spark.driver.memoryOverhead", ""))
    if beside is None:
        beside = default_overhead(heap)
    return heap + beside


def plausible_jvm_bytes(conf: Mapping[str, str]) -> int:
    """The bytes that the JVM of an executor may use at most: its heap, and what is beside it.

    Not what it is allowed to use, so the larger of the user's overhead and of Spark's counts.
    """
    heap = memory_bytes(conf.get("spark.executor.memory", "")) or _DEFAULT_HEAP
    beside = memory_bytes(conf.get("spark.executor.memoryOverhead", "")) or 0
    off_heap = memory_bytes(conf.get("spark.memory.offHeap.size", "")) or 0
    return heap + max(beside, default_overhead(heap)) + off_heap


def is_local_master(master: str) -> bool:
    """Whether the JVM of the driver is the only executor; `local-cluster` of Spark's tests has others."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


RESOURCES = (
    "spark.driver.cores",
    "spark.driver.memory",
    "spark.driver.memoryOverhead",
    "spark.executor.instances",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
)
"""What the tuning may change."""

SIZING = (
    "spark.master",
    "spark.submit.deployMode",
    *RESOURCES,
    "spark.driver.memoryOverheadFactor",
    "spark.executor.memoryOverheadFactor",
    "spark.kubernetes.memoryOverheadFactor",
    "spark.executor.pyspark.memory",
    "spark.cores.max",
    "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.maxExecutors",
    "spark.memory.fraction",
    "spark.memory.offHeap.size",
    "spark.sql.shuffle.partitions",
    "spark.task.cpus",
)

MAX_VALUE_CHARACTERS = 80  # of one setting, whose value is the user's
