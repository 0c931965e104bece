"""Retention: ended jobs above the count of their pool, histories and tunings of old runs, old log indices."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from loguru import logger

from orchestrator.history.history import Ring
from orchestrator.leader.bulk_claims import TokenFolders, claim_many, commit_and_release
from orchestrator.leader.duty import Fence, FenceOperations
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue
from orchestrator.model.times import moment
from orchestrator.tuning.store import TuningStore
from queues import LOW_LANE_SUFFIX, Candidate, Delete, QueueSet, Token, commit_many, due_of, order_of

if TYPE_CHECKING:
    from orchestrator.logs.shipping.indices import DailyIndices

_KEEP_MS = 90 * 24 * 3_600_000
_COUNT_INTERVAL_SECONDS = 2.0  # how late a changed limit takes effect
_EXPIRY_INTERVAL_SECONDS = 3_600.0
_AT_ONCE = 100


class RetentionCount:
    """Makes the oldest jobs in finish due now where a pool has too many: the handler removes them.

    A pool and its low lane count together. Each job is claimed, so that two leaders cannot do it twice, and
    committed with the fence of the leader, because a late leader has counted jobs that may be gone by now.
    A job that is already due counts as removed, so that no further job is removed instead.
    """

    name = "retention-count"

    def __init__(self, queue_set: QueueSet, limit: Callable[[], int], fence: Fence) -> None:
        self._set, self._limit, self._fence = queue_set, limit, fence  # jobs per pool, 0 = all
        self._folders = TokenFolders(queue_set, Queue.FINISH)

    def step(self) -> float:
        """Make at most a hundred jobs due; raises NotLeading, and the errors of reads."""
        fence, limit = self._fence(), self._limit()
        if not limit:
            return _COUNT_INTERVAL_SECONDS
        lanes = defaultdict[str, dict[str, int]](dict)
        for pool, stat in self._folders.stats().items():
            lanes[pool.removesuffix(LOW_LANE_SUFFIX)][pool] = stat.children
        full = [pool for pool, counts in lanes.items() if sum(counts.values()) > limit]
        random.shuffle(full)  # so that a pool that is always too full does not starve the others
        left = _AT_ONCE
        for pool in full:
            excess = list(islice(self._excess(list(lanes[pool]), limit), left))
            done = self._make_due(excess, fence)
            if done:
                logger.info("{} jobs of pool {} are removed early: it keeps {} at most", done, pool, limit)
            left -= len(excess)
            if done and not left:
                return 0.0
        return _COUNT_INTERVAL_SECONDS

    def _excess(self, pools: list[str], limit: int) -> Iterator[Candidate]:
        """The jobs above the limit that are not due yet, the oldest first."""
        tokens = sorted(
            ((order_of(name), pool, name) for pool in pools for name in self._folders.names(pool)),
        )
        now = f"{self._set.clock.now_ms():011x}"
        for _, pool, name in tokens[: max(0, len(tokens) - limit)]:
            if due_of(name) > now and (token := Token.parse(name)) is not None:
                yield Candidate(Queue.FINISH, pool, token)

    def _make_due(self, candidates: list[Candidate], fence: FenceOperations) -> int:
        now = self._set.clock.now_ms()
        claims = claim_many(self._set, candidates)
        return len(
            commit_and_release(claim.transition(due=now, extra=fence, release=True) for claim in claims)
        )


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
        fence = self._fence()
        before = self._set.clock.confirmed_ms() - self._keep_ms
        old = list(islice(self._older_than(before), _AT_ONCE))
        _remove(self._set, fence, old)
        return 0.0 if len(old) == _AT_ONCE else _EXPIRY_INTERVAL_SECONDS

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


class OldTunings:
    """Removes tunings that were last written more than 90 days ago and serve no run any more.

    A worker or an operator that writes at the same moment changes the version, and the node stays.
    """

    name = "old-tunings"

    def __init__(self, queue_set: QueueSet, nodes: Nodes, fence: Fence, *, keep_ms: int = _KEEP_MS) -> None:
        self._set, self._fence, self._keep_ms = queue_set, fence, keep_ms
        self._tunings = TuningStore(queue_set.session, nodes)

    def step(self) -> float:
        """Remove at most a hundred; raises NotLeading, and the errors of reads."""
        fence = self._fence()
        before = self._set.clock.confirmed_ms() - self._keep_ms
        old = list(islice(self._tunings.abandoned(before), _AT_ONCE))
        _remove(self._set, fence, old)
        return 0.0 if len(old) == _AT_ONCE else _EXPIRY_INTERVAL_SECONDS


def _remove(queue_set: QueueSet, fence: FenceOperations, old: Sequence[Delete]) -> None:
    """Remove these nodes, each in a multi of its own with the fence."""
    root = queue_set.root
    refusals = commit_many(root.session, [(*fence, removal) for removal in old], root.receipts)
    for removal, refused in zip(old, refusals, strict=True):
        words = "is removed" if refused is None else f"is not removed: {refused}"
        logger.info("{} has no recent runs and {}", removal.path, words)


class OldLogs:
    """Removes indices that are older than `days`.

    It needs no fence: two leaders remove the same indices, because the name of an index holds its day.
    """

    name = "old-logs"

    def __init__(self, indices: Callable[[], "DailyIndices"], days: int) -> None:
        self._indices, self._days = indices, days

    def step(self) -> float:
        """Remove all that are too old; raises TargetUnreachable, TargetRefuses."""
        indices = self._indices()
        for index in indices.older_than(self._days):
            indices.remove(index)
            logger.info("the logs of {} are removed: {:,} records", index.day, index.documents)
        return _EXPIRY_INTERVAL_SECONDS
