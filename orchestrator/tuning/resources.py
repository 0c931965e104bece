"""The resources that are tuned: how definitions and Spark name them, and how they are written."""

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum

from orchestrator.config.tuning import Gains
from orchestrator.model.spark import Spark
from orchestrator.tuning.law import Bounds
from spark_runner.protocol.sizing import (
    LEAST_HEAP,
    LEAST_OVERHEAD,
    OVERHEAD_FACTOR,
    default_overhead,
    is_local_master,
    memory_bytes,
)

MIB = 1 << 20
_GRAIN = 64  # MiB, of a memory
_DEFAULT_HEAP = 1024.0  # MiB
_PYTHON_OVERHEAD_FACTOR = (
    0.4  # on Kubernetes; of a jar it is that above, and this only the more careful guess
)
_LARGEST_FACTOR = 100.0
_MOST_DIGITS = 9
_LOCAL_THREADS = re.compile(r"local(?:\[(\d{1,9})(?:,.*)?\])?", re.ASCII)


class Resource(StrEnum):
    """A resource, by its field in the part `spark` of a definition."""

    DRIVER_MEMORY = "driver.memory"
    DRIVER_OVERHEAD = "driver.overhead"
    DRIVER_CORES = "driver.cores"
    EXECUTOR_MEMORY = "executor.memory"
    EXECUTOR_OVERHEAD = "executor.overhead"
    EXECUTOR_CORES = "executor.cores"
    EXECUTOR_INSTANCES = "executor.instances"

    @property
    def process(self) -> str:
        """`driver` or `executor`."""
        return self.value.partition(".")[0]

    @property
    def is_memory(self) -> bool:
        """Whether its unit is MiB; otherwise it is a number."""
        return self.value.endswith(("memory", "overhead"))

    @property
    def is_overhead(self) -> bool:
        """Whether it is the memory beside a heap."""
        return self.value.endswith("overhead")

    @property
    def is_heap(self) -> bool:
        """Whether it is the memory of a JVM's objects."""
        return self.is_memory and not self.is_overhead

    @property
    def spark_property(self) -> str:
        """The name of the Spark property."""
        field = self.value.partition(".")[2]
        return f"spark.{self.process}.{'memoryOverhead' if field == 'overhead' else field}"

    @property
    def least(self) -> float:
        """The smallest allocation that makes sense."""
        if not self.is_memory:
            return 1.0
        return (LEAST_OVERHEAD if self.is_overhead else LEAST_HEAP) / MIB

    def bounds(self, largest: float, asked: float = math.inf) -> Bounds:
        """The bounds of the law; numbers are rounded to the nearest, as their demand has room of its own.

        A definition that asks for less than the least amount means it: that is the least one then.
        """
        least = min(self.least, asked)
        largest = max(largest, least)
        return Bounds(least, largest, _GRAIN) if self.is_memory else Bounds(1.0, largest, 1.0, 0.5)

    def gains(self, gains: Gains) -> Gains:
        """The gains of the law: only a heap holds more garbage where it is larger."""
        return gains if self.is_heap else gains.model_copy(update={"garbage": 0.0})

    def value_in(self, conf: Mapping[str, object]) -> float | None:
        """The allocation that these Spark properties mean, with Spark's defaults; None if they leave it open.

        A text that Spark would refuse counts as none.
        """
        text = conf.get(self.spark_property)
        if text is not None and (found := self.parsed(str(text))) is not None:
            return found
        if self.is_overhead:
            heap = Resource(f"{self.process}.memory").value_in(conf) or _DEFAULT_HEAP
            return default_overhead(int(heap * MIB), _overhead_factor(self.process, conf)) / MIB
        if self.is_memory:
            return _DEFAULT_HEAP
        return 1.0 if self is Resource.DRIVER_CORES else None

    def parsed(self, text: str) -> float | None:
        """An allocation in Spark's notation; None for text that it refuses, and for 0."""
        if self.is_memory:
            found = memory_bytes(text)
            return found / MIB if found else None
        text = text.strip()
        is_count = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
        return float(text) if is_count and int(text) else None

    def written(self, value: float) -> str:
        """An allocation in Spark's notation."""
        return f"{value:.0f}m" if self.is_memory else f"{value:.0f}"


def _overhead_factor(process: str, conf: Mapping[str, object]) -> float:
    for name in (f"spark.{process}.memoryOverheadFactor", "spark.kubernetes.memoryOverheadFactor"):
        with suppress(ValueError):
            if 0 < (found := float(str(conf.get(name, "")))) < _LARGEST_FACTOR:
                return found
    is_kubernetes = str(conf.get("spark.master", "")).startswith("k8s:")
    return _PYTHON_OVERHEAD_FACTOR if is_kubernetes else OVERHEAD_FACTOR


def tasks_at_a_time(conf: Mapping[str, object]) -> float:
    """The tasks that one process runs at a time; infinite where it takes all cores that it finds."""
    master = str(conf.get("spark.master", ""))
    if is_local_master(master):
        threads = _LOCAL_THREADS.fullmatch(master)
        return float(threads[1] or 1) if threads else math.inf
    cores = Resource.EXECUTOR_CORES.value_in(conf) or (math.inf if master.startswith("spark:") else 1.0)
    each = str(conf.get("spark.task.cpus", ""))
    return cores / (Resource.EXECUTOR_CORES.parsed(each) or 1.0)


def with_resources(spark: Spark, properties: Mapping[str, str] | None) -> Spark:
    """The Spark part with other resources, given as properties; its named fields win over `conf`."""
    for resource in Resource:
        if (text := (properties or {}).get(resource.spark_property)) is not None:
            process, _, field = resource.value.partition(".")
            value = text if resource.is_memory else int(text)
            part = getattr(spark, process).model_copy(update={field: value})
            spark = spark.model_copy(update={process: part})
    return spark
