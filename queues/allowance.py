"""How much time may go into what is not needed now."""

import time


class Allowance:
    """A `share` of the time that passes, saved up to `burst` seconds, to be spent on something."""

    def __init__(self, share: float, burst: float) -> None:
        self._share, self._burst = share, burst
        self._left, self._at = burst, time.monotonic()

    def is_left(self) -> bool:
        """Whether something may be spent now."""
        now = time.monotonic()
        self._left = min(self._left + self._share * (now - self._at), self._burst)
        self._at = now
        return self._left > 0

    def spend(self, seconds: float) -> None:
        """So much was spent; what was too much has to be saved first."""
        self._left -= seconds
