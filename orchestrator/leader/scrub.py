"""The search for damage in the queues, now and then."""

import random
import time

from loguru import logger

from queues.scrubber import Scrubber, ScrubReport


class Scrub:
    """Scrubs every `interval` seconds, with jitter; not at once, so that a new leader costs nothing.

    Each mend is a multi that proves that the damage is still there: several may scrub at once, and need not.
    """

    name = "scrub"

    def __init__(self, scrubber: Scrubber, interval: float) -> None:
        self._scrubber, self._interval = scrubber, interval
        self._told = ""
        self._due = self._next()

    def step(self) -> float:
        """Search when it is time to; raises what reads raise."""
        left = self._due - time.monotonic()
        if left > 0:
            return left
        self._due = self._next()
        self._tell(self._scrubber.scrub())
        return self._due - time.monotonic()

    def _next(self) -> float:
        return time.monotonic() + self._interval * random.uniform(0.5, 1.5)  # noqa: S311 - not for security

    def _tell(self, report: ScrubReport) -> None:
        # Each mend was logged when it was made; what is left would be told every time.
        left = "; ".join(f"{', '.join(names)}: {kind}" for kind, names in report.unrepaired.items())
        if left and left != self._told:
            logger.warning("left as it is in the queues: {}", left)
        self._told = left
