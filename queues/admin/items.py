"""Operations of an operator on single items: remove, move, requeue, by force if need be; and dead letters."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.claims.claimer import Claimer
from queues.model.codec import decode, encode, timestamp
from queues.model.errors import Conflict, ItemHeld, ItemNotFound, NotClaimed, QueueError, Refusal
from queues.model.events import Event, EventKind
from queues.model.names import Token, check_id
from queues.model.operations import Check, Create, Delete, Operation
from queues.model.record import NOTE_BYTES, Record
from queues.store.commit import commit
from queues.store.root import Root


def move_to_dead(root: Root, queue: str, pool: str, token: Token, error: QueueError) -> bool:
    """Move the token of an item that cannot be read to `dead`, its bytes unchanged, with the reason.

    Returns False while the item is held, if it has moved on, or if the record has changed.
    """
    layout, session = root.layout, root.session
    found = session.get(layout.record(token.id))
    if found is not None and _can_be_claimed(root, token.id, found[0]):
        return False  # repaired since
    lock, dead = layout.lock(pool, token.id), layout.token(root.dead, pool, token)
    reason = encode({"reason": str(error), "queue": queue, "since": timestamp()})
    operations: list[Operation] = [
        Create(lock, ephemeral=True),  # made and removed in one multi: succeeds only if the item is not held
        Delete(layout.token(queue, pool, token)),
        Create(dead, reason),
        Delete(lock),
    ]
    if found is not None:
        operations.append(Check(layout.record(token.id), found[1].version))
    try:
        commit(session, operations)
    except Conflict as conflict:
        return conflict.ambiguous and session.exists(dead) is not None
    root.listeners.notify(
        Event(
            EventKind.DEAD,
            token.id,
            queue,
            pool,
            to_queue=root.dead,
            to_pool=pool,
            due=token.due,
            released=True,
            detail=str(error),
        )
    )
    return True


def replay(root: Root, claimer: Claimer, pool: str, token: Token, queue: str | None) -> str:
    """Move one item from dead back to its original queue, or to `queue`; returns that queue.

    Its counts of failures and claims restart at 0. Raises CorruptRecord or ItemNotFound while it cannot be
    read, NotClaimed while it is held.
    """
    note = root.session.get(root.layout.token(root.dead, pool, token))
    (claim,) = claimer.claim([Candidate(root.dead, pool, token)], capped=False)
    if not isinstance(claim, Claim):
        raise claim
    target = queue or _origin(root, claim, b"" if note is None else note[0])
    try:
        claim.commit(queue=target, due=root.clock.now_ms(), release=True)
    finally:
        claim.give_up()
    return target


def _can_be_claimed(root: Root, item_id: str, data: bytes) -> bool:
    try:
        record = Record.decode(item_id, data)
        record.evolve(claims=record.claims + 1).encode(root.max_record_bytes + NOTE_BYTES)
    except QueueError:
        return False
    return True


def _origin(root: Root, claim: Claim, note: bytes) -> str:
    error = claim.record.error
    if error is None and note:
        try:
            error = decode(note)
        except ValueError:
            error = None
    origin = "" if error is None else str(error.get("queue", ""))
    return origin if origin in root.queues and origin != root.dead else root.queues[0]


_MAX_TRIES = 10  # each failed try means that the item moved, so its holder is working on it


class ItemOperations:
    """Changes items as their holder would. An item held elsewhere is refused, or taken by force."""

    def __init__(self, root: Root, claimer: Claimer) -> None:
        self._root = root
        self._claimer = claimer

    def remove(
        self,
        item_id: str,
        *,
        force: bool = False,
        extra: Callable[[Claim], Iterable[Operation]] = lambda _claim: (),
    ) -> None:
        """Remove an item; raises ItemNotFound, ItemHeld. `extra` removes the children of its record."""
        claim = self.take(item_id, force=force)
        try:
            claim.remove(tuple(extra(claim)))
        finally:
            claim.give_up()

    def move(
        self,
        item_id: str,
        queue: str,
        *,
        pool: str | None = None,
        payload: Mapping[str, Any] | None = None,
        delay_ms: int | None = None,
        force: bool = False,
    ) -> Record:
        """Move an item to a queue, due as before or after `delay_ms`; raises ItemNotFound, ItemHeld."""
        self._root.check_queue(queue)
        claim = self.take(item_id, force=force)
        try:
            due = None if delay_ms is None else self._root.clock.now_ms() + delay_ms
            stays = queue == claim.queue  # an item that stays in dead keeps its error
            claim.commit(
                queue=queue,
                pool=pool,
                payload=payload,
                due=due,
                failures=claim.record.failures if stays else 0,
                error=claim.record.error if stays else None,
                release=True,
            )
        finally:
            claim.give_up()
        return claim.record

    def take(self, item_id: str, *, force: bool = False) -> Claim:
        """Claim one item by its id; by force also from its holder, whose claim is then lost.

        Also raises ItemNotFound if the item is removed meanwhile and another one is put under its id.
        """
        reason, run_key = Refusal.MOVED_ON, ""
        for _ in range(_MAX_TRIES):
            record, _version = self._root.read(check_id(item_id))
            if record.run_key != (run_key := run_key or record.run_key):
                raise ItemNotFound(item_id)
            (claim,) = self._claimer.claim([Candidate(record.queue, record.pool, record.token)], capped=False)
            if isinstance(claim, Claim):
                return claim
            if not isinstance(claim, NotClaimed):
                raise claim
            reason = claim.reason
            if reason is Refusal.POOL_CHANGED:  # possibly removed manually, without a consumer to restore it
                self._root.pool_folders.restore(record.pool)
                self._root.pools.forget()
            if reason is Refusal.HELD:
                if not force:
                    raise ItemHeld(item_id, self.holder(record))
                forced = self._claimer.seize(record)
                if forced is not None:
                    return forced
        raise NotClaimed(item_id, reason)

    def holder(self, record: Record) -> str:
        """The name of an item's holder, for display; empty if the item is not held."""
        found = self._root.session.get(self._root.layout.lock(record.pool, record.id))
        if found is None:
            return ""
        try:
            return str(decode(found[0]).get("worker", ""))
        except ValueError:
            return "an unnamed holder"
