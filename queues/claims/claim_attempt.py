"""One attempt to claim an item: its multi, the slot of a capped pool, and the meaning of a refusal."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from queues.model.errors import NotClaimed, Refusal
from queues.model.names import Layout, Token
from queues.model.operations import Check, Create, Delete, Operation, Set
from queues.model.record import Record
from queues.session import Session
from queues.store.root import Root


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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that seems to be free. `stopped`: claim it only while a request to stop it exists."""

    queue: str
    pool: str
    token: Token
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """How an item is held: the session that owns its lock, its slot in a capped pool, and the reason."""

    session: Session
    generation: int
    slot: int | None
    weight: int  # bytes of that session's paths
    nonce: str  # names this claim for its whole life; the record's nonce changes with each transition
    for_stop: bool  # claimed for a request to stop the item, regardless of due time, pause and cap


@dataclass(slots=True)
class ClaimAttempt:
    """A multi that claims an item, with the new record, the version it replaces, and the resulting hold."""

    record: Record
    version: int
    hold: Hold
    operations: Sequence[Operation]
    refusals: Sequence[Refusal]  # by the index of the refused operation


def claim_attempt(
    layout: Layout,
    candidate: Candidate,
    record: Record,
    version: int,
    hold: Hold,
    *,
    data: bytes,
    note: bytes,
    limits: Sequence[Check],
    seize: bool,
) -> ClaimAttempt:
    """The multi of a claim. `data` becomes the record, `note` the lock; `limits` must not have changed."""
    pool, token = candidate.pool, candidate.token
    lock = layout.lock(pool, token.id)
    # Without the check of the token, a worker with a stale listing would lock an item that has moved on.
    operations: list[Operation] = [Check(layout.token(candidate.queue, pool, token)), *limits]
    refusals = [Refusal.MOVED_ON, *(Refusal.POOL_CHANGED for _ in limits)]
    if seize:
        operations.append(Delete(lock))
        refusals.append(Refusal.CHANGED)
    operations += (Create(lock, note, ephemeral=True), Set(layout.record(token.id), data, version))
    refusals += (Refusal.HELD, Refusal.CHANGED)
    if hold.slot is not None:
        operations.append(Create(layout.hold(pool, hold.slot), token.id.encode(), ephemeral=True))
        refusals.append(Refusal.FULL)
    if candidate.stopped:
        operations.append(Check(layout.stop(pool, token.id)))
        refusals.append(Refusal.NO_STOP)
    return ClaimAttempt(record, version, hold, operations, refusals)


def change_operations(
    layout: Layout, hold: Hold, old: Record, new: Record, *, data: bytes, version: int, release: bool
) -> list[Operation]:
    """The multi that replaces the record, moves the token if needed, and checks or removes the lock."""
    before = layout.token(old.queue, old.pool, old.token)
    after = layout.token(new.queue, new.pool, new.token)
    if release:
        operations = unlock_operations(layout, hold, old)
    elif new.pool == old.pool:
        operations = [Check(layout.lock(old.pool, old.id))]
    else:
        found = hold.session.get(layout.lock(old.pool, old.id))
        note = b"" if found is None else found[0]
        operations = unlock_operations(layout, hold, old)
        operations.insert(1, Create(layout.lock(new.pool, old.id), note, ephemeral=True))
    record = Set(layout.record(old.id), data, version)
    if before == after:
        operations += (Check(before), record)
    else:
        operations += (Delete(before), record, Create(after))
    return operations


def unlock_operations(layout: Layout, hold: Hold, record: Record) -> list[Operation]:
    """The operations that remove the lock of an item and free its slot."""
    operations: list[Operation] = [Delete(layout.lock(record.pool, record.id))]
    if hold.slot is not None:
        operations.append(Delete(layout.hold(record.pool, hold.slot)))
    return operations
