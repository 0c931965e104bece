"""The guard of a host: limits what a worker starts by pressure and memory."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loguru import logger

from orchestrator.admission.host import DriverProcesses, Host
from orchestrator.admission.starts import Starts
from orchestrator.model.limits import Limits
from orchestrator.model.spark import Spark
from spark_runner.protocol.control_groups import Resource
from spark_runner.protocol.sizing import driver_bytes

_LOOK_SECONDS = 1.0  # the kernel renews pressure every two seconds
_START_SECONDS = 10.0  # until a new driver shows in the pressure, which is an average over 10 s
_MANY = 1_000_000
_GIB = 1 << 30
_WAITED_FOR = {"cpu": "a processor", "memory": "memory"}


@dataclass(frozen=True, slots=True)
class _Need:
    """The needs of a driver on this host."""

    memory: int  # bytes; 0 = memory is not guarded
    is_paced: bool  # it waits until earlier starts show in the pressure


@dataclass(frozen=True, slots=True)
class _HostCapacity:
    """The number of drivers of a kind that may start, and the reason why not more."""

    count: int
    reason: str


class Guard:
    """Decides whether this host may take a job, and whether a driver fits on it. Thread-safe.

    `slots` limits the number of concurrent jobs, independent of the load of the processors unless a limit of
    their pressure is set. Memory is accounted as by a scheduler with requests: the available memory, minus
    what the drivers of this host have declared and do not use yet, minus what is promised to drivers whose
    processes do not exist yet. So neither simultaneous starts nor drivers that grow late exceed the memory.
    Memory that other programs allocate later is not guarded.
    """

    def __init__(
        self,
        limits: Callable[[], Limits],
        starts: Starts,
        host: Host,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits, self._starts, self._host, self._clock = limits, starts, host, clock
        self._guard = threading.Lock()
        self._pressures: dict[Resource, float | None] = {}
        self._drivers: Mapping[str, DriverProcesses] = {}
        self._read_at = self._drivers_at = float("-inf")
        self._is_pressed = self._is_silent = False  # as it was logged last
        self._short: int | None = None  # bytes of the smallest driver that did not fit, until it does

    # ------------------------------------------------------------------ pressure
    def refusal(self) -> str | None:
        """Why no job may be taken now; None if one may. Cheap: pressure is read at most once a second."""
        limits = self._limits()
        bounds: dict[Resource, float] = {
            "cpu": limits.cpu_pressure_limit,
            "memory": limits.memory_pressure_limit,
        }
        with self._guard:
            now = self._clock()
            if now - self._read_at >= _LOOK_SECONDS:
                self._pressures = {resource: self._host.pressure(resource) for resource in bounds}
                self._read_at = now
            words = None
            for resource, bound in bounds.items():
                waited = self._pressures[resource]
                if bound and waited is not None and waited > bound:
                    words = (
                        f"work on this host has waited for {_WAITED_FOR[resource]} in {waited:.0f} % of the "
                        f"last 10 s, {resource}_pressure_limit is {bound:g}"
                    )
            self._report_pressure(words, silent=any(bounds.values()) and None in self._pressures.values())
            return words

    def _report_pressure(self, words: str | None, *, silent: bool) -> None:
        if silent and not self._is_silent:
            logger.info("this kernel reports no pressure (PSI): the limits of pressure have no effect here")
        self._is_silent = silent
        if (words is not None) is not self._is_pressed:
            self._is_pressed = words is not None
            if words:
                logger.warning("no job is taken: {}", words)
            else:
                logger.info("jobs are taken again: the pressure of this host has fallen")

    # ------------------------------------------------------------------ capacity
    def admit(self, job: str, spark: Spark) -> str | None:
        """Why a driver of this kind may not start here now; None if it may, and its memory is promised to it.

        The promise holds until `started`. Only one worker of a host decides at a time.
        """
        need = self._need(spark)
        if need is None:
            return None
        try:
            with self._starts.turn():
                # In this order, so that a driver whose processes appear in between counts twice, not never.
                promised = self._starts.promised(but=job)
                capacity = self._capacity(need, self._host.drivers(), promised)
                if capacity.count:
                    self._starts.add(job, need.memory)
        except (OSError, ValueError) as error:
            self._starts.remove(job)
            capacity = _HostCapacity(0, f"the free memory of this host cannot be determined: {error}")
        self._report_capacity(need, capacity)
        return None if capacity.count else capacity.reason

    def started(self, job: str) -> None:
        """End the promise: the processes of the driver exist by now, or it does not start."""
        self._starts.remove(job)

    def capacity(self, spark: Spark) -> int:
        """An estimate of how many drivers of this kind fit: at most a second old, without a promise."""
        need = self._need(spark)
        if need is None:
            return _MANY
        with self._guard:
            now = self._clock()
            if now - self._drivers_at >= _LOOK_SECONDS:
                self._drivers, self._drivers_at = self._host.drivers(), now
            drivers = self._drivers
        try:
            capacity = self._capacity(need, drivers, [])
        except (OSError, ValueError):
            return 0
        self._report_capacity(need, capacity)
        return capacity.count

    def total(self) -> int | None:
        """The bytes of memory that this host has for drivers in all; None where memory is not guarded."""
        if not self._limits().memory_guard:
            return None
        try:
            return min(memory.total for memory in self._host.memory())
        except (OSError, ValueError):
            return None

    def _need(self, spark: Spark) -> _Need | None:
        """The needs of a driver; None if nothing is guarded."""
        limits = self._limits()
        if not limits.memory_guard:
            self._report_capacity(_Need(0, is_paced=False), _HostCapacity(_MANY, ""))
        if spark.target.deploy_mode == "cluster" or not (limits.memory_guard or limits.cpu_pressure_limit):
            return None
        memory = driver_bytes(spark.properties) if limits.memory_guard else 0
        return _Need(memory, is_paced=limits.cpu_pressure_limit > 0)

    def _capacity(
        self, need: _Need, drivers: Mapping[str, DriverProcesses], promised: Sequence[int]
    ) -> _HostCapacity:
        capacity = _HostCapacity(_MANY, "")
        if need.is_paced:
            processors = self._host.processors()
            starting = len(promised) + sum(each.age < _START_SECONDS for each in drivers.values())
            words = f"{starting} drivers are starting on this host, as many as it has processors"
            capacity = _HostCapacity(max(0, processors - starting), words)
        if need.memory:
            memories = self._host.memory()
            least = min(memories, key=lambda memory: memory.free(drivers))
            total = min(memory.total for memory in memories)
            free = least.free(drivers) - sum(promised)
            count = max(0, free // need.memory)
            if count < capacity.count:
                words = _never(need.memory, total) if need.memory > total else ""
                capacity = _HostCapacity(count, words or _lack(need.memory, free, least.available))
        return capacity

    def _report_capacity(self, need: _Need, capacity: _HostCapacity) -> None:
        with self._guard:
            # For the smallest driver: a host with memory for small drivers only logs each change once.
            if capacity.count and self._short is not None and (need.memory >= self._short or not need.memory):
                self._short = None
                logger.info("this host has capacity for drivers again")
            elif not capacity.count:
                if self._short is None:
                    logger.warning("a job is not taken: {}", capacity.reason)
                self._short = need.memory if self._short is None else min(self._short, need.memory)


def _never(needed: int, total: int) -> str:
    words = f"its driver may use {_gib(needed)} of memory, and the worker's host has {_gib(total)} in all"
    return f"{words}: it never starts there; ask for less, or start a worker on a larger host"


def _lack(needed: int, free: int, available: int) -> str:
    words = f"its driver may use {_gib(needed)} of memory, and {_gib(max(0, free))} are free"
    kept = available - free
    return f"{words}: {_gib(kept)} of {_gib(available)} are declared by other drivers" if kept else words


def _gib(amount: int) -> str:
    return f"{amount / _GIB:.1f} GiB"
