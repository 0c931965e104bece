"""Limits the number of ended jobs that each pool keeps: the oldest above the limit are removed early."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice

from loguru import logger

from orchestrator.leader.bulk_claims import TokenFolders, claim_many, commit_and_release
from orchestrator.leader.duty import Fence, FenceOperations
from orchestrator.model.states import Queue
from queues import LOW_LANE_SUFFIX, Candidate, QueueSet, Token, due_of, order_of

_LOOK_SECONDS = 2.0  # how late a changed limit takes effect
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
            return _LOOK_SECONDS
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
        return _LOOK_SECONDS

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
