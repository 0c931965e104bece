"""The facade of the queues of one root: put, read, claim, and operations of an administrator."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from queues.admin import items as dead_items
from queues.admin.inspection import Inspection
from queues.admin.items import ItemOperations
from queues.claims.claim import Claim
from queues.claims.claim_attempt import Candidate
from queues.claims.claimer import Claimer
from queues.claims.orphan_locks import release_orphan_locks
from queues.model.errors import ItemNotFound, NotClaimed, QueueError, Refusal
from queues.model.events import Listener
from queues.model.names import DEFAULT_POOL, Layout, Token
from queues.model.operations import Operation
from queues.model.record import MAX_RECORD_BYTES, NewItem, Record
from queues.producer.entrance import Entrance
from queues.session import Session, SessionSettings
from queues.store.clock import EnsembleClock
from queues.store.pool_limits import Pools
from queues.store.pool_nodes import MAX_POOLS

_CLAIM_TRIES = 3


class QueueSet:
    """Several queues over one set of items: an id is in exactly one queue, always.

    Safe to use from several threads. Waits are in seconds, due times in epoch milliseconds of the ensemble.
    `paused_queues`: the queues from which nothing is claimed while a pool is paused; default all.
    `caps`: whether a pool's cap limits the items held in it; if false, the caller enforces the cap.
    `max_pools`: the number of pools beyond which a put makes no new pool; called when a put needs a new one.
    `entrance` is the part that only puts and reads, for code that needs no more.
    """

    def __init__(
        self,
        session: Session,
        layout: Layout,
        queues: Sequence[str],
        *,
        dead: str = "dead",
        owner: str = "",
        max_record_bytes: int = MAX_RECORD_BYTES,
        paused_queues: Collection[str] | None = None,
        caps: bool = True,
        max_pools: Callable[[], int] = lambda: MAX_POOLS,
    ) -> None:
        self.entrance = Entrance(
            session,
            layout,
            queues,
            dead=dead,
            owner=owner,
            max_record_bytes=max_record_bytes,
            paused_queues=paused_queues,
            caps=caps,
            max_pools=max_pools,
        )
        self.root = self.entrance.root
        self._owns_session = False
        self.claimer = Claimer(self.root)
        self.look = Inspection(self.root)
        self._admin = ItemOperations(self.root, self.claimer)

    @classmethod
    def connect(
        cls, zookeeper: str | SessionSettings, root: str, queues: Sequence[str], *, owner: str = ""
    ) -> Self:
        """Queues below `root` on a new session, which ends with `close`; raises Unreachable."""
        settings = SessionSettings(zookeeper) if isinstance(zookeeper, str) else zookeeper
        made = cls(Session(settings).start(), Layout(root), queues, owner=owner or f"pid-{os.getpid()}")
        made._owns_session = True
        return made

    def listen(self, listener: Listener) -> None:
        """Call `listener` with each event, on the thread that made the change. It must return quickly."""
        self.root.listeners.add(listener)

    def close(self, timeout: float = 10.0) -> bool:
        """Wait for background puts, False if some are not done in time; end the session of `connect`."""
        done = self.entrance.close(timeout)
        self.claimer.sessions.close()
        if self._owns_session:
            self.session.close()
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def session(self) -> Session:
        """The session of all reads and puts."""
        return self.root.session

    @property
    def layout(self) -> Layout:
        """The paths of all nodes."""
        return self.root.layout

    @property
    def queues(self) -> tuple[str, ...]:
        """The names of the queues."""
        return self.root.queues

    @property
    def clock(self) -> EnsembleClock:
        """The ensemble's clock."""
        return self.root.clock

    @property
    def pools(self) -> Pools:
        """The limits of the pools."""
        return self.root.pools

    def ensure_pool(self, pool: str = DEFAULT_POOL) -> None:
        """Make the folders of a pool in every queue; `max_pools` does not limit an explicit call."""
        self.entrance.ensure_pool(pool)

    # ------------------------------------------------------------------ put
    def put(
        self,
        queue: str,
        item_id: str | None,
        payload: Mapping[str, Any],
        *,
        pool: str = DEFAULT_POOL,
        delay_ms: int = 0,
        due_ms: int | None = None,
        max_wait: float = 0.0,
        existing: bool = False,
        run_key: str = "",
        extra: Callable[[str], Iterable[Operation]] = lambda _record: (),
    ) -> Record:
        """Put a new item, exactly once: see `Entrance.put`."""
        return self.entrance.put(
            queue,
            item_id,
            payload,
            pool=pool,
            delay_ms=delay_ms,
            due_ms=due_ms,
            max_wait=max_wait,
            existing=existing,
            run_key=run_key,
            extra=extra,
        )

    def put_many(
        self, queue: str, items: Sequence[NewItem], *, max_wait: float = 0.0, existing: bool = False
    ) -> list[Record]:
        """Put many items in few requests, each exactly once; raises PutsFailed if some were not put."""
        return self.entrance.put_many(queue, items, max_wait=max_wait, existing=existing)

    def put_background(self, queue: str, item: NewItem) -> "Future[Record]":
        """Put in the background, batched with others; the future has the record or the error of `put`."""
        return self.entrance.put_background(queue, item)

    def flush_puts(self, timeout: float) -> bool:
        """Wait until every background put so far is done; False if some are not after `timeout` seconds."""
        return self.entrance.flush_puts(timeout)

    # ------------------------------------------------------------------ look
    def get(self, item_id: str) -> Record:
        """One item; raises ItemNotFound, CorruptRecord."""
        return self.entrance.get(item_id)

    def read(self, item_id: str) -> tuple[Record, int]:
        """One item and the version of its record; raises ItemNotFound, CorruptRecord."""
        return self.entrance.read(item_id)

    def contains(self, item_id: str) -> bool:
        """Whether an item has this id."""
        return self.look.contains(item_id)

    def tokens(self, queue: str, pool: str = DEFAULT_POOL) -> list[Token]:
        """The tokens of a queue in due order, without foreign nodes."""
        return self.look.tokens(queue, pool)

    def count(self, queue: str, pool: str = DEFAULT_POOL) -> int:
        """The number of nodes in a queue, without listing them."""
        return self.look.count(queue, pool)

    # ------------------------------------------------------------------ operate
    def remove(
        self,
        item_id: str,
        *,
        force: bool = False,
        extra: Callable[[Claim], Iterable[Operation]] = lambda _claim: (),
    ) -> None:
        """Remove an item. Raises ItemNotFound, and ItemHeld unless forced; a forced holder loses its claim.

        `extra` returns the operations that remove the children of the record.
        """
        self._admin.remove(item_id, force=force, extra=extra)

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
        """Move an item to another queue or pool, due as before or after `delay_ms`; raises as `remove`."""
        return self._admin.move(item_id, queue, pool=pool, payload=payload, delay_ms=delay_ms, force=force)

    def requeue(self, item_id: str, *, delay_ms: int = 0, force: bool = False) -> Record:
        """Make an item due after `delay_ms` in its queue; raises as `remove` does."""
        return self._admin.move(item_id, self.get(item_id).queue, delay_ms=delay_ms, force=force)

    def remove_pool(self, pool: str, extra_operations: Callable[[], Sequence[Operation]] = tuple) -> bool:
        """Remove an empty pool that no consumer names, and its low lane; False if there is no such pool.

        Raises PoolInUse. A concurrent put stops the removal, or makes the pool again.
        `extra_operations` returns operations for the same multi.
        """
        return self.root.pool_folders.remove(pool, extra_operations)

    def claim_by_id(self, item_id: str, *, force: bool = False) -> Claim:
        """Claim one item in any queue, to inspect it before a change; raises as `remove` does."""
        return self._admin.take(item_id, force=force)

    def replay(
        self, ids: Iterable[str] | None = None, *, pool: str = DEFAULT_POOL, queue: str | None = None
    ) -> dict[str, QueueError | None]:
        """Move items from dead back to their queues, or to `queue`; returns the error of each, or None."""
        if queue is not None:
            self.root.check_queue(queue)
        wanted = None if ids is None else set(ids)
        outcomes: dict[str, QueueError | None] = {name: ItemNotFound(name) for name in wanted or ()}
        for token in self.tokens(self.root.dead, pool):
            if wanted is None or token.id in wanted:
                try:
                    dead_items.replay(self.root, self.claimer, pool, token, queue)
                except QueueError as error:
                    outcomes[token.id] = error
                else:
                    outcomes[token.id] = None
        return outcomes

    # ------------------------------------------------------------------ claim
    def claim(self, queue: str, pool: str, token: Token, *, stopped: bool = False) -> Claim | None:
        """Claim a free item; None if another claimer was faster or the item has moved on.

        Raises CorruptRecord or ItemNotFound for a token whose item cannot be read: see `move_to_dead`.
        `stopped`: only if a request to stop the item exists, which allows a claim before it is due.
        """
        outcome: Claim | QueueError
        for _ in range(_CLAIM_TRIES):
            (outcome,) = self.claimer.claim([Candidate(queue, pool, token, stopped)])
            # The cached limits of its pool were stale; no other claimer was faster.
            if not (isinstance(outcome, NotClaimed) and outcome.reason is Refusal.POOL_CHANGED):
                break
        if isinstance(outcome, Claim):
            return outcome
        if isinstance(outcome, NotClaimed):
            return None
        raise outcome

    def take_many(self, candidates: Sequence[Candidate]) -> list[Claim | QueueError]:
        """Claim these items for an operator, regardless of pauses and caps; a claim or an error for each.

        NotClaimed: it is held, or it has moved on. CorruptRecord, ItemNotFound: see `move_to_dead`.
        """
        return self.claimer.claim(candidates, capped=False)

    def holds(self, item_id: str) -> bool:
        """Whether this QueueSet holds the item, or is claiming it."""
        return self.claimer.holds(item_id)

    def release_orphan_locks(self, pool: str, locked: Iterable[str]) -> list[str]:
        """Remove locks of our own sessions without a claim, which lost replies have left."""
        return release_orphan_locks(self.root, self.claimer, pool, locked)

    def move_to_dead(self, queue: str, pool: str, token: Token, error: QueueError) -> bool:
        """Move the token of an item that cannot be read to `dead`, its bytes unchanged, with the reason.

        Returns False while the item is held, if it has moved on, or if the record has changed.
        """
        return dead_items.move_to_dead(self.root, queue, pool, token, error)
