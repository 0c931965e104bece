"""Turns: weighted round robin over pools, each with its low lane, and the time budget of idle work."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar


class TimeBudget:
    """Accumulates a `share` of elapsed time, up to `burst` seconds, to be spent on optional work."""

    def __init__(self, share: float, burst: float) -> None:
        self._share, self._burst = share, burst
        self._left, self._at = burst, time.monotonic()

    def is_left(self) -> bool:
        """Whether the budget is positive."""
        now = time.monotonic()
        self._left = min(self._left + self._share * (now - self._at), self._burst)
        self._at = now
        return self._left > 0

    def spend(self, seconds: float) -> None:
        """Deduct time that was spent. The budget may become negative and must then recover first."""
        self._left -= seconds


T = TypeVar("T")


@dataclass(slots=True)
class Lane:
    """One pool in the rotation."""

    pool: str
    weight: int
    low_share: float
    current: int = 0
    low_credit: float = 0.0


class Rotation(Generic[T]):
    """Gives turns to pools in proportion to their weights, evenly spread: nginx's smooth round robin.

    An empty pool loses its turn and accumulates none. Within the turns of a pool, its low lane gets those for
    which the pool itself has nothing, and at least `low_share` of them.
    """

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}

    def arrange(self, pool: str, weight: int, low_share: float) -> None:
        """Add a pool, or change one."""
        lane = self._lanes.setdefault(pool, Lane(pool, weight, low_share))
        lane.weight, lane.low_share = weight, low_share

    def keep(self, pools: set[str]) -> None:
        """Remove all other pools."""
        self._lanes = {pool: lane for pool, lane in self._lanes.items() if pool in pools}

    def collect(self, take: Callable[[str, bool], T | None], limit: int) -> list[T]:
        """Up to `limit` values; `take(pool, low)` returns the next of a pool or its low lane, or None."""
        taken: list[T] = []
        lanes = list(self._lanes.values())
        while lanes and len(taken) < limit:
            lane = self._next(lanes)
            thing = self._take(lane, take)
            if thing is None:
                lane.current = 0
                lanes.remove(lane)
            else:
                taken.append(thing)
        return taken

    @staticmethod
    def _next(lanes: list[Lane]) -> Lane:
        if len(lanes) == 1:
            return lanes[0]
        total = 0
        for lane in lanes:
            lane.current += lane.weight
            total += lane.weight
        chosen = max(lanes, key=lambda lane: lane.current)
        chosen.current -= total
        return chosen

    @staticmethod
    def _take(lane: Lane, take: Callable[[str, bool], T | None]) -> T | None:
        lane.low_credit = min(lane.low_credit + lane.low_share, 1.0 + lane.low_share)
        for low in (True, False) if lane.low_credit >= 1 else (False, True):
            thing = take(lane.pool, low)
            if thing is not None:
                if low:  # turns beyond its share do not reduce it
                    lane.low_credit = max(0.0, lane.low_credit - 1)
                return thing
        return None
