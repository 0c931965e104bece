"""Expiry: histories of names without runs for long, and daily log indices beyond their retention."""

from collections.abc import Callable, Iterator
from itertools import islice

from loguru import logger

from orchestrator.history.history import Ring
from orchestrator.leader.duty import Fence
from orchestrator.logs.shipping.indices import DailyIndices
from orchestrator.model.paths import Nodes
from orchestrator.model.times import moment
from queues import Delete, QueueSet, commit_many

_KEEP_MS = 90 * 24 * 3_600_000
_LOOK_SECONDS = 3_600.0
_AT_ONCE = 100


class OldHistories:
    """Removes histories that were last written more than 90 days ago, with the fence of the leader.

    A run that ends at the same moment changes the version, and its history stays.
    """

    name = "old-histories"

    def __init__(self, queue_set: QueueSet, nodes: Nodes, fence: Fence, *, keep_ms: int = _KEEP_MS) -> None:
        self._set, self._nodes, self._fence = queue_set, nodes, fence
        self._keep_ms = keep_ms

    def step(self) -> float:
        """Remove at most a hundred; raises NotLeading, and the errors of reads."""
        fence, root = self._fence(), self._set.root
        before = self._set.clock.confirmed_ms() - self._keep_ms
        old = list(islice(self._older_than(before), _AT_ONCE))
        refusals = commit_many(root.session, [(*fence, removal) for removal in old], root.receipts)
        for removal, refused in zip(old, refusals, strict=True):
            words = "is removed" if refused is None else f"is not removed: {refused}"
            logger.info("{} has no recent runs and {}", removal.path, words)
        return 0.0 if len(old) == _AT_ONCE else _LOOK_SECONDS

    def _older_than(self, before: int) -> Iterator[Delete]:
        session = self._set.session
        for name in session.children(self._nodes.histories) or ():
            path = self._nodes.history(name)
            stat = session.exists(path)  # one by one: all together exceed the largest answer
            if stat is None or stat.modified >= before:
                continue
            found = session.get(path)
            if found is not None and _last_ended(name, found[0]) < before:
                yield Delete(path, found[1].version)


def _last_ended(name: str, data: bytes) -> float:
    """The end of its last run by the clock of the run's host, in epoch ms; 0 where none is stored.

    The modification time alone is not enough: the clock of the server may have been far behind.
    """
    try:
        ended = moment(Ring.decode(name, data).runs[-1]["ended"])
    except (ValueError, LookupError):
        return 0.0
    return 0.0 if ended is None else ended.timestamp() * 1000


class OldLogs:
    """Removes indices that are older than `days`.

    It needs no fence: two leaders remove the same indices, because the name of an index holds its day.
    """

    name = "old-logs"

    def __init__(self, indices: Callable[[], DailyIndices], days: int) -> None:
        self._indices, self._days = indices, days

    def step(self) -> float:
        """Remove all that are too old; raises TargetUnreachable, TargetRefuses."""
        indices = self._indices()
        for index in indices.older_than(self._days):
            indices.remove(index)
            logger.info("the logs of {} are removed: {:,} records", index.day, index.documents)
        return _LOOK_SECONDS
