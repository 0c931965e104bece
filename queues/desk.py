"""Operations of an administrator on single items: remove and move, by force if needed."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from queues.claim import Claim
from queues.claim_attempt import Candidate
from queues.claimer import Claimer
from queues.documents import decode
from queues.errors import ItemHeld, ItemNotFound, NotClaimed, Refusal
from queues.names import check_id
from queues.operations import Operation
from queues.record import Record
from queues.root import Root

_MAX_TRIES = 10  # each failed try means that the item moved, so its holder is working on it


class AdminOperations:
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
