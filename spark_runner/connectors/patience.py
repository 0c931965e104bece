"""How long a task tries again."""

import time

_PAUSE_S = 0.05  # before the first further attempt; it doubles up to _MAX_PAUSE_S
_MAX_PAUSE_S = 2.0


class Patience:
    """The time in which a task may try again; it begins anew with each success."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.succeeded()

    def succeeded(self) -> None:
        """Begin anew."""
        self._pause = _PAUSE_S
        self._began: float | None = None

    def wait(self) -> bool:
        """Wait before a further attempt; False if the time is over."""
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        if now + self._pause - self._began > self._seconds:
            return False
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _MAX_PAUSE_S)
        return True
