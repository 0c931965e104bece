"""Measures the depth of each queue, and the age of the oldest job that waits in accept."""

from collections.abc import Iterable, Iterator

from orchestrator.leader.bulk_claims import TokenFolders
from orchestrator.metrics.registry import Depths, Metrics
from orchestrator.model.states import Queue
from queues import QueueSet, Token

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
