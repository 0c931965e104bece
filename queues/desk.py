"""What an operator does to single items: remove, move, requeue, by force where need be."""

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

_MAX_TRIES = 10  # the item moves while it is looked at: each time it did, its holder was busy with it


class Desk:
    """Changes items as their holder would: what is held by somebody else is refused, or taken by force."""

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
        """Remove an item; raises ItemNotFound, ItemHeld. `extra` removes what hangs below its record."""
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
        """Bring an item to a queue, due as before or after `delay_ms`; raises ItemNotFound, ItemHeld."""
        self._root.check_queue(queue)
        claim = self.take(item_id, force=force)
        try:
            due = None if delay_ms is None else self._root.clock.now_ms() + delay_ms
            stays = queue == claim.queue  # what is dead stays dead for the same reason
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
        """Claim one item by its id; by force from whoever holds it, who then loses its claim.

        Raises ItemNotFound also when it is removed meanwhile and the id put anew: that one is not meant.
        """
        reason, meant = Refusal.MOVED_ON, ""
        for _ in range(_MAX_TRIES):
            record, _version = self._root.read(check_id(item_id))
            if record.run_key != (meant := meant or record.run_key):
                raise ItemNotFound(item_id)
            (claim,) = self._claimer.claim([Candidate(record.queue, record.pool, record.token)], capped=False)
            if isinstance(claim, Claim):
                return claim
            if not isinstance(claim, NotClaimed):
                raise claim
            reason = claim.reason
            if reason is Refusal.POOL_CHANGED:  # perhaps removed by hand, and no consumer is there to mend it
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
        """Who holds an item, for people; empty when nobody does."""
        found = self._root.session.get(self._root.layout.lock(record.pool, record.id))
        if found is None:
            return ""
        try:
            return str(decode(found[0]).get("worker", ""))
        except ValueError:
            return "somebody who left no name"
