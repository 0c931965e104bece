"""The pace of requests to one target: their concurrency, and the delay after failures.

Additive increase, multiplicative decrease (RFC 5681, section 3.1) of requests in flight, and delays with
full jitter (a uniform share of an exponentially growing delay), so that hosts that lost a server at the
same time do not all retry at the same time.
"""

import random
import threading
import time

_FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS = 0.2, 30.0
_PAUSE_SECONDS = 30.0  # between attempts while an operator must act


class Pace:
    """Permits for requests, shared by all threads that send to one target."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._flying = 0
        self._failures = 0  # in a row
        self._not_before = 0.0  # monotonic
        self._stopped = False
        self._changed = threading.Condition()
        self.trouble = ""  # why nothing is sent; empty if requests succeed
        self.is_paused = False  # an operator must act

    @property
    def limit(self) -> float:
        """The present limit of requests in flight."""
        return self._limit

    def enter(self) -> bool:
        """Wait for a permit; False after `stop`."""
        with self._changed:
            while True:
                if self._stopped:
                    return False
                left = self._not_before - time.monotonic()
                if left <= 0 and self._flying < max(1, int(self._limit)):
                    self._flying += 1
                    return True
                self._changed.wait(left if left > 0 else None)

    def succeeded(self) -> None:
        """End a request that the target accepted as a whole."""
        with self._changed:
            self._flying -= 1
            self._failures = 0
            self._limit = min(float(self._most), self._limit + 1.0 / self._limit)
            self.trouble, self.is_paused = "", False
            self._changed.notify_all()

    def slowed(self, reason: str, delay: float = 0.0) -> None:
        """End a request that was accepted in part, or after which the target asks for fewer."""
        self._after_failure(reason, delay, self._limit / 2)

    def failed(self, reason: str, delay: float = 0.0) -> None:
        """End a request without a response: only one request at a time follows."""
        self._after_failure(reason, delay, 1.0)

    def paused(self, reason: str) -> None:
        """End a request that was refused for a permanent reason."""
        self._after_failure(reason, _PAUSE_SECONDS, 1.0, paused=True)

    def stop(self) -> None:
        """Give no more permits and wake all waiting threads."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def hurry(self) -> None:
        """End the present delay."""
        with self._changed:
            self._not_before = 0.0
            self._changed.notify_all()

    def _after_failure(self, reason: str, delay: float, limit: float, *, paused: bool = False) -> None:
        with self._changed:
            self._flying -= 1
            self._failures += 1
            longest = min(_LONGEST_DELAY_SECONDS, _FIRST_DELAY_SECONDS * 2.0 ** min(self._failures, 20))
            wait = max(delay, random.uniform(0, longest))  # noqa: S311 - not for security
            self._not_before = max(self._not_before, time.monotonic() + wait)
            self._limit = max(1.0, limit)
            self.trouble, self.is_paused = reason, paused
            self._changed.notify_all()
