"""Duties on the queues: measure their depth and the wait of their oldest jobs, and search them for damage."""

import random
import time
from collections.abc import Iterable, Iterator

from loguru import logger

from orchestrator.leader.bulk_claims import TokenFolders
from orchestrator.metrics.registry import Depths, Metrics
from orchestrator.model.states import Queue
from queues import QueueSet, Scrubber, ScrubReport, Token

_LOOK_SECONDS = 10.0


class Depth:
    """Counts jobs for the metrics and changes nothing. Counts come from the folders, without listing them."""

    name = "depth"

    def __init__(self, queue_set: QueueSet, metrics: Metrics) -> None:
        self._set, self._metrics = queue_set, metrics
        self._folders = TokenFolders(queue_set, Queue.ACCEPT)
        self._first: dict[str, int] = {}  # pool -> due time of its first job in accept, epoch ms

    def step(self) -> float:
        """Count once; raises the errors of reads."""
        for pool, names in self._folders.changes():
            self._first.pop(pool, None)
            first = next(filter(None, map(Token.parse, names)), None)
            if first is not None:
                self._first[pool] = first.due
        counts = self._set.look.counts()
        waiting = {
            (Queue.ACCEPT.value, pool): seconds for pool, seconds in self._waiting(counts[Queue.ACCEPT])
        }
        depths = {(queue, pool): n for queue, pools in counts.items() for pool, n in pools.items()}
        self._metrics.show_depths(Depths(depths, waiting))
        return _LOOK_SECONDS

    def _waiting(self, pools: Iterable[str]) -> Iterator[tuple[str, float]]:
        now = self._set.clock.now_ms()
        for pool in pools:
            yield pool, max(0.0, (now - self._first.get(pool, now)) / 1000)


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
