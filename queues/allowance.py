"""A time budget for optional work."""

import time


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
