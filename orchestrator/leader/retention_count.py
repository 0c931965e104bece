"""Of the jobs that have ended, so many are kept in each pool; those above that go before their time."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice

from loguru import logger

from orchestrator.leader.duty import Fence
from orchestrator.leader.taking import settle, take
from orchestrator.leader.token_folders import TokenFolders
from orchestrator.states import Queue
from queues.claim_attempt import Candidate
from queues.names import LOW, Token, due_of, order_of
from queues.operations import Operation
from queues.queue import QueueSet

_LOOK_SECONDS = 2.0  # how long a limit that was changed is not noticed
_AT_ONCE = 100


class RetentionCount:
    """Makes the oldest of a pool that has too many in finish due now: its handler archives and removes them.

    A pool and its low lane count together. By claim, so that two who do it at once cannot do it twice, and
    with the fence of the leader: who is late has counted what may be gone by now. What is due already counts
    as gone, so that no job goes in place of one that is waiting to be removed.
    """

    name = "retention-count"

    def __init__(self, queue_set: QueueSet, limit: Callable[[], int], fence: Fence) -> None:
        self._set, self._limit, self._fence = queue_set, limit, fence  # jobs per pool, 0 = all
        self._folders = TokenFolders(queue_set, Queue.FINISH)

    def step(self) -> float:
        """Make some due, a hundred at most; raises NotLeading, and what reads raise."""
        fence, limit = self._fence(), self._limit()
        if not limit:
            return _LOOK_SECONDS
        lanes = defaultdict[str, dict[str, int]](dict)
        for pool, stat in self._folders.stats().items():
            lanes[pool.removesuffix(LOW)][pool] = stat.children
        full = [pool for pool, counts in lanes.items() if sum(counts.values()) > limit]
        random.shuffle(full)  # one that is always too full must not keep the others waiting
        left = _AT_ONCE
        for pool in full:
            excess = list(islice(self._excess(list(lanes[pool]), limit), left))
            done = self._make_due(excess, fence)
            if done:
                logger.info("{} jobs of pool {} go before their time: it keeps {}", done, pool, limit)
            left -= len(excess)
            if done and not left:
                return 0.0
        return _LOOK_SECONDS

    def _excess(self, pools: list[str], limit: int) -> Iterator[Candidate]:
        """Those above the limit that are not due yet, the oldest first."""
        standing = sorted(
            ((order_of(name), pool, name) for pool in pools for name in self._folders.names(pool)),
        )
        now = f"{self._set.clock.now_ms():011x}"
        for _, pool, name in standing[: max(0, len(standing) - limit)]:
            if due_of(name) > now and (token := Token.parse(name)) is not None:
                yield Candidate(Queue.FINISH, pool, token)

    def _make_due(self, candidates: list[Candidate], fence: tuple[Operation, ...]) -> int:
        now = self._set.clock.now_ms()
        claims = take(self._set, candidates)
        return len(settle([claim.transition(due=now, extra=fence, release=True) for claim in claims]))
