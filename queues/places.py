"""Slots of capped pools: each held item of such a pool takes one, so that the cap is never exceeded."""

import random

from queues.errors import NotClaimed, Refusal
from queues.root import Root


class PoolSlots:
    """The free slots of capped pools, read once per round of claims."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._free: dict[str, list[int]] = {}

    def take(self, pool: str, cap: int, item_id: str) -> int | None:
        """A random free slot, None for a pool without a cap; raises NotClaimed if none is free."""
        if not cap:
            return None
        if pool not in self._free:
            free = self._read(pool, cap)
            random.shuffle(free)  # so that consumers do not compete for the same slot
            self._free[pool] = free
        if not self._free[pool]:
            raise NotClaimed(item_id, Refusal.FULL)
        return self._free[pool].pop()

    def _read(self, pool: str, cap: int) -> list[int]:
        """The free slots that may be taken under the cap.

        An item that was claimed without a cap, or under a higher one, has no slot below the cap but counts
        against it: for each such item the highest slot is not given out, and a holder of a withheld slot
        counts in the same way.
        """
        session, layout = self._root.session, self._root.layout
        slots = [int(name) for name in session.children(layout.holds(pool)) or () if name.isdecimal()]
        nodes = session.get_many([layout.hold(pool, slot) for slot in slots])
        # The locks are read after the slots: a claim in between counts twice, but is never missed.
        locked = {name.encode() for name in session.children(layout.locks(pool)) or ()}
        taken = {slot: node[0] for slot, node in zip(slots, nodes, strict=True) if node is not None}
        limit = cap
        while (
            limit and limit + len(locked - {item_id for slot, item_id in taken.items() if slot < limit}) > cap
        ):
            limit -= 1
        return [slot for slot in range(limit) if slot not in taken]
