"""What a push measures: counts, speeds over a window, and quantiles of latency."""

import math
from collections import Counter, deque
from collections.abc import Mapping
from typing import Self

WINDOWS_S = (10, 60, 300)
"""The windows of speeds: what happens now, one minute, and five."""
_IDLE_S = 60  # without a record, after which the delay begins anew
_BASE, _LEAST_S = 1.1, 1e-4  # of the buckets of latencies: each bound is a tenth above the one before


class Speed:
    """Records per second over the last minutes, by counts of whole seconds."""

    def __init__(self, now: float, longest: int = WINDOWS_S[-1]) -> None:
        self._began, self._longest = now, longest  # of the windows that are asked for, in seconds
        self._counts = deque[tuple[int, int]]()  # second, count

    def add(self, count: int, now: float) -> None:
        """Count records now."""
        second = int(now)
        if self._counts and self._counts[-1][0] == second:
            self._counts[-1] = (second, self._counts[-1][1] + count)
        else:
            self._counts.append((second, count))
            while self._counts[0][0] <= second - self._longest:
                self._counts.popleft()

    def over(self, window: int, now: float) -> float:
        """The records of the last `window` seconds, or since the start if that is later, per second."""
        first = int(now) - window
        found = sum(count for second, count in self._counts if second > first)
        return found / max(1.0, min(float(window), now - self._began))


class Latencies:
    """Latencies of requests in buckets of which each is a tenth wider: quantiles are exact to a tenth."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts = Counter[int](counts or {})

    def add(self, seconds: float) -> None:
        """Count a request."""
        self.counts[max(0, math.ceil(math.log(max(seconds, _LEAST_S) / _LEAST_S, _BASE)))] += 1

    def quantile(self, part: float) -> float:
        """The upper bound of the latencies of this part of the requests, in seconds; 0 without a request."""
        left = part * self.counts.total()
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 0:
                return float(_LEAST_S * _BASE**bucket)
        return 0.0


class Delay:
    """The time from the first record to the last one; it begins anew after a minute without any."""

    def __init__(self) -> None:
        self._first = self._last = float("-inf")

    def add(self, now: float) -> None:
        """A record is delivered now."""
        if now - self._last > _IDLE_S:
            self._first = now
        self._last = now

    def seconds(self) -> float:
        """The time from the first record to the last one, in seconds."""
        return 0.0 if self._last == float("-inf") else self._last - self._first


class Counts:
    """What happened to the records of a lane, or of all: each record is read once, and settled once."""

    NAMES = ("read", "delivered", "dead", "retried", "requests", "errors", "timeouts", "late")

    def __init__(self) -> None:
        self.read = self.delivered = self.dead = self.retried = 0  # rows
        self.requests = self.errors = self.timeouts = self.late = 0  # requests

    @property
    def settled(self) -> int:
        """The records that are delivered, or dead letters."""
        return self.delivered + self.dead

    def __iadd__(self, other: "Counts") -> Self:
        """Add those of another one."""
        for name in self.NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def document(self) -> dict[str, int]:
        """Each count by its name."""
        return {name: getattr(self, name) for name in self.NAMES}
