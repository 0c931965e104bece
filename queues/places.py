"""The places of capped pools: each held item of such a pool takes one, so that the cap is never overshot."""

import random

from queues.errors import NotClaimed, Refusal
from queues.root import Root


class Places:
    """The free places of capped pools, looked up once for one round of claims."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._free: dict[str, list[int]] = {}
        self._taken: set[str] = set()

    def take(self, pool: str, cap: int, item_id: str) -> int | None:
        """A free place at random, None for a pool without cap; raises NotClaimed when there is none."""
        if not cap:
            return None
        if pool not in self._free:
            free = [place for place in range(self._placed(pool, cap)) if str(place) not in self._taken]
            random.shuffle(free)  # so that consumers do not race for the same one
            self._free[pool] = free
        if not self._free[pool]:
            raise NotClaimed(item_id, Refusal.FULL)
        return self._free[pool].pop()

    def _placed(self, pool: str, cap: int) -> int:
        """How many places there are: fewer than the cap while items are held that have none of them.

        These were claimed before there was a cap, or under a higher one. Counted before and after: what comes
        or goes meanwhile must not make room that is not there.
        """
        session, layout = self._root.session, self._root.layout
        locks = session.exists(layout.locks(pool))
        self._taken = {name for name in session.children(layout.holds(pool)) or () if name.isdecimal()}
        locks_after = session.exists(layout.locks(pool))
        held = max(0 if stat is None else stat.children for stat in (locks, locks_after))
        return max(0, cap - max(0, held - sum(int(name) < cap for name in self._taken)))
