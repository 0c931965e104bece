"""Searches the queues for damage at intervals."""

import random
import time

from loguru import logger

from queues import Scrubber, ScrubReport


class Scrub:
    """Scrubs every `interval` seconds with jitter, and not at once, so that a new leader costs nothing.

    Each repair is a multi that checks that the damage is still there, so several workers may scrub at once.
    """

    name = "scrub"

    def __init__(self, scrubber: Scrubber, interval: float) -> None:
        self._scrubber, self._interval = scrubber, interval
        self._reported = ""
        self._due = self._next()

    def step(self) -> float:
        """Scrub if it is due; raises the errors of reads."""
        left = self._due - time.monotonic()
        if left > 0:
            return left
        self._due = self._next()
        self._report(self._scrubber.scrub())
        return self._due - time.monotonic()

    def _next(self) -> float:
        return time.monotonic() + self._interval * random.uniform(0.5, 1.5)  # noqa: S311 - not for security

    def _report(self, report: ScrubReport) -> None:
        # Each repair was logged when it was made. Remaining damage is logged once, not at every search.
        left = "; ".join(f"{', '.join(names)}: {kind}" for kind, names in report.unrepaired.items())
        if left and left != self._reported:
            logger.warning("damage that stays in the queues: {}", left)
        self._reported = left
