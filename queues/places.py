"""The places of capped pools: each held item of such a pool takes one, so that the cap is never overshot."""

import random

from queues.errors import NotClaimed, Refusal
from queues.root import Root


class Places:
    """The free places of capped pools, looked up once for one round of claims."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._free: dict[str, list[int]] = {}

    def take(self, pool: str, cap: int, item_id: str) -> int | None:
        """A free place at random, None for a pool without cap; raises NotClaimed when there is none."""
        if not cap:
            return None
        if pool not in self._free:
            session, layout = self._root.session, self._root.layout
            taken = set(session.children(layout.holds(pool)) or ())
            locks = session.exists(layout.locks(pool))
            free = [place for place in range(cap) if str(place) not in taken]
            random.shuffle(free)  # so that consumers do not race for the same one
            # Items that were claimed before there was a cap have no place: they count all the same.
            left = cap - (0 if locks is None else locks.children)
            self._free[pool] = free[: max(0, left)]
        if not self._free[pool]:
            raise NotClaimed(item_id, Refusal.FULL)
        return self._free[pool].pop()
