"""Stops requests to a target that takes none, and probes whether it does again."""

from enum import StrEnum

_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.25, 2.0  # before a probe; a target that recovers is at full speed within 5 s


class Circuit(StrEnum):
    """The state of a circuit breaker."""

    CLOSED = "closed"  # requests pass
    OPEN = "open"  # none does, until the pause is over
    HALF_OPEN = "half-open"  # one does, the probe


class CircuitBreaker:
    """Opens after `threshold` failures without a success between them; a success closes it."""

    def __init__(self, threshold: int = 10) -> None:
        self._threshold = threshold
        self._failures, self._pause, self._until, self._probed = 0, _FIRST_PAUSE_S, 0.0, 0.0
        self.state = Circuit.CLOSED

    @property
    def is_up(self) -> bool:
        """Whether the target took the last request."""
        return not self._failures

    def wait(self, now: float) -> float | None:
        """The seconds until a request may start; 0 if it may now, None while a probe is in flight."""
        if self.state is Circuit.HALF_OPEN:
            return None
        return max(0.0, self._until - now) if self.state is Circuit.OPEN else 0.0

    def started(self, now: float) -> None:
        """A request starts, which `wait` allows."""
        if self.state is Circuit.OPEN:
            self.state, self._probed = Circuit.HALF_OPEN, now

    def succeeded(self) -> None:
        """The target took a request."""
        self.state, self._failures, self._pause = Circuit.CLOSED, 0, _FIRST_PAUSE_S

    def failed(self, started: float, now: float) -> None:
        """The target did not take a request that started then; earlier ones than the probe say no more."""
        self._failures += 1
        is_probe = self.state is Circuit.HALF_OPEN and started >= self._probed
        if is_probe or (self.state is Circuit.CLOSED and self._failures >= self._threshold):
            self.state, self._until = Circuit.OPEN, now + self._pause
            self._pause = min(2 * self._pause, _MAX_PAUSE_S)
