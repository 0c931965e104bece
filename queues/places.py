"""The places of capped pools: each held item of such a pool takes one, so that the cap is never overshot."""

import random

from queues.errors import NotClaimed, Refusal
from queues.root import Root


class PoolSlots:
    """The free places of capped pools, looked up once for one round of claims."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._free: dict[str, list[int]] = {}

    def take(self, pool: str, cap: int, item_id: str) -> int | None:
        """A free place at random, None for a pool without cap; raises NotClaimed when there is none."""
        if not cap:
            return None
        if pool not in self._free:
            free = self._look(pool, cap)
            random.shuffle(free)  # so that consumers do not race for the same one
            self._free[pool] = free
        if not self._free[pool]:
            raise NotClaimed(item_id, Refusal.FULL)
        return self._free[pool].pop()

    def _look(self, pool: str, cap: int) -> list[int]:
        """The free places, as many of them as may be given.

        Who was claimed before there was a cap, or under a higher one, has no place below it and counts all
        the same: for each the highest place is given to nobody, and who holds one of those counts so too.
        """
        session, layout = self._root.session, self._root.layout
        places = [int(name) for name in session.children(layout.holds(pool)) or () if name.isdecimal()]
        nodes = session.get_many([layout.hold(pool, place) for place in places])
        # The locks after the places: who claims in between counts once too often, nobody too seldom.
        locked = {name.encode() for name in session.children(layout.locks(pool)) or ()}
        placed = {place: node[0] for place, node in zip(places, nodes, strict=True) if node is not None}
        limit = cap
        while limit and limit + len(locked - {i for place, i in placed.items() if place < limit}) > cap:
            limit -= 1
        return [place for place in range(limit) if place not in placed]
