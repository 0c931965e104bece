"""What keeps a worker from taking more than its host can bear."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from loguru import logger

from orchestrator.admission.host import DriverProcesses, Host
from orchestrator.admission.starts import Starts
from orchestrator.models.limits import Limits
from orchestrator.models.spark import Spark
from spark_runner.driver_memory import driver_bytes
from spark_runner.pressure import Resource

_LOOK_SECONDS = 1.0  # the kernel renews pressure every two seconds
_START_SECONDS = 10.0  # until a driver that has just started shows in the pressure, which covers so much
_MANY = 1_000_000
_GIB = 1 << 30
_WAITED_FOR = {"cpu": "a processor", "memory": "memory"}


@dataclass(frozen=True, slots=True)
class _Need:
    """What a driver needs of this host."""

    memory: int  # bytes; 0 = none is guarded
    is_paced: bool  # it waits until those that started before it show in the pressure


@dataclass(frozen=True, slots=True)
class _Room:
    """For how many drivers of a kind there is room, and why not for more."""

    count: int
    reason: str


class Guard:
    """Says when this host should take nothing, and which driver has no room on it. Thread-safe.

    How many jobs run at once is what `slots` says, whatever the processors have to do, unless a limit of
    their pressure is set. Memory is guarded as a scheduler does it that goes by requests: what is available,
    less what the drivers of this host have declared and do not use yet, less what is promised to those whose
    processes do not exist yet. So neither drivers that start in the same moment nor those that grow late
    take more than there is; what other programs take later is theirs.
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
        self._is_pressed = self._is_silent = False  # as was told last
        self._short: int | None = None  # bytes of the smallest driver that had no room, until there is

    # ------------------------------------------------------------------ pressure
    def refusal(self) -> str | None:
        """Why nothing may be taken now; None when something may. Cheap: pressure is read once a second."""
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
            self._tell_pressure(words, silent=any(bounds.values()) and None in self._pressures.values())
            return words

    def _tell_pressure(self, words: str | None, *, silent: bool) -> None:
        if silent and not self._is_silent:
            logger.info("this kernel does not tell pressure (PSI): its limits have no effect here")
        self._is_silent = silent
        if (words is not None) is not self._is_pressed:
            self._is_pressed = words is not None
            if words:
                logger.warning("nothing is taken: {}", words)
            else:
                logger.info("jobs are taken again: the pressure of this host has fallen")

    # ------------------------------------------------------------------ room
    def admit(self, job: str, spark: Spark) -> str | None:
        """Why a driver of this kind may not start here now; None when it may, and is promised what it needs.

        The promise holds until `started`. No two workers of a host decide at the same time.
        """
        need = self._need(spark)
        if need is None:
            return None
        try:
            with self._starts.turn():
                # In this order: a driver whose processes appear meanwhile counts twice, and not never.
                promised = self._starts.promised(but=job)
                room = self._room(need, self._host.drivers(), promised)
                if room.count:
                    self._starts.add(job, need.memory)
        except (OSError, ValueError) as error:
            self._starts.remove(job)
            room = _Room(0, f"whether this host has room for its driver cannot be known: {error}")
        self._tell_room(need, room)
        return None if room.count else room.reason

    def started(self, job: str) -> None:
        """The driver's processes can be seen by now, or it does not start: nothing is promised any more."""
        self._starts.remove(job)

    def room(self, spark: Spark) -> int:
        """How many drivers of this kind seem to have room here: cheap, a second old at most, no promise."""
        need = self._need(spark)
        if need is None:
            return _MANY
        with self._guard:
            now = self._clock()
            if now - self._drivers_at >= _LOOK_SECONDS:
                self._drivers, self._drivers_at = self._host.drivers(), now
            drivers = self._drivers
        try:
            room = self._room(need, drivers, [])
        except (OSError, ValueError):
            return 0
        self._tell_room(need, room)
        return room.count

    def _need(self, spark: Spark) -> _Need | None:
        """None when there is nothing to guard."""
        limits = self._limits()
        if not limits.memory_guard:
            self._tell_room(_Need(0, is_paced=False), _Room(_MANY, ""))
        if spark.target.deploy_mode == "cluster" or not (limits.memory_guard or limits.cpu_pressure_limit):
            return None
        memory = driver_bytes(spark.properties) if limits.memory_guard else 0
        return _Need(memory, is_paced=limits.cpu_pressure_limit > 0)

    def _room(self, need: _Need, drivers: Mapping[str, DriverProcesses], promised: Sequence[int]) -> _Room:
        room = _Room(_MANY, "")
        if need.is_paced:
            processors = self._host.processors()
            starting = len(promised) + sum(each.age < _START_SECONDS for each in drivers.values())
            words = f"{starting} drivers are starting on this host, as many as it has processors"
            room = _Room(max(0, processors - starting), words)
        if need.memory:
            memories = self._host.memory()
            least = min(memories, key=lambda memory: memory.room(drivers))
            total = min(memory.total for memory in memories)
            free = least.room(drivers) - sum(promised)
            count = max(0, free // need.memory)
            if count < room.count:
                words = _never(need.memory, total) if need.memory > total else ""
                room = _Room(count, words or _lack(need.memory, free, least.available))
        return room

    def _tell_room(self, need: _Need, room: _Room) -> None:
        with self._guard:
            # Of the smallest: what has room for a small driver and none for a large one is told once each.
            if room.count and self._short is not None and (need.memory >= self._short or not need.memory):
                self._short = None
                logger.info("there is room for drivers again")
            elif not room.count:
                if self._short is None:
                    logger.warning("a job is not taken: {}", room.reason)
                self._short = need.memory if self._short is None else min(self._short, need.memory)


def _never(needed: int, total: int) -> str:
    words = (
        f"its driver may come to use {_gib(needed)} of memory and the worker's host has {_gib(total)} in all"
    )
    return f"{words}: it never starts there; ask for less, or start a worker on a larger host"


def _lack(needed: int, free: int, available: int) -> str:
    words = f"its driver may come to use {_gib(needed)} of memory and {_gib(max(0, free))} are free"
    kept = available - free
    return f"{words}: {_gib(kept)} of {_gib(available)} are declared by other drivers" if kept else words


def _gib(amount: int) -> str:
    return f"{amount / _GIB:.1f} GiB"
