"""The producing side of the queues of one root: put items and read their records."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from queues.model.names import DEFAULT_POOL, Layout
from queues.model.operations import Operation
from queues.model.record import MAX_RECORD_BYTES, NewItem, Record
from queues.producer.producer import Producer
from queues.session import Session
from queues.store.clock import EnsembleClock
from queues.store.pool_limits import Pools
from queues.store.pool_nodes import MAX_POOLS
from queues.store.root import Root


class Entrance:
    """The part of a QueueSet that puts and reads items. It neither claims nor imports code that claims.

    Safe to use from several threads. Arguments and units are those of `QueueSet`.
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
        names = queues if dead in queues else (*queues, dead)
        self.root = Root(
            session,
            layout,
            names,
            dead=dead,
            owner=owner,
            max_record_bytes=max_record_bytes,
            paused_queues=paused_queues,
            caps=caps,
            max_pools=max_pools,
        )
        self._producer = Producer(self.root)

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
        self.root.ensure_pool(pool)

    def close(self, timeout: float = 10.0) -> bool:
        """Wait for background puts; False if some are not done in time."""
        return self._producer.close(timeout)

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
        """Put a new item, exactly once; an id of None makes a UUID.

        `extra` gets the path of the record and returns operations for the same multi. `max_wait`: seconds
        to wait for capacity in a full pool. `existing`: return the item that has the id instead of raising.
        Raises IdTaken, QueueFull, TooManyPools, TooLarge, InvalidName, InvalidPayload, OutcomeUnknown.
        """
        item = NewItem(payload, item_id, pool, delay_ms, due_ms, run_key, extra)
        return self._producer.put(queue, item, max_wait=max_wait, existing=existing)

    def check_put(self, queue: str, item_id: str | None, *, pool: str = DEFAULT_POOL) -> None:
        """Raise what `put` would raise now: IdTaken, QueueFull, TooManyPools, InvalidName; writes nothing."""
        self._producer.check(queue, item_id, pool)

    def put_many(
        self, queue: str, items: Sequence[NewItem], *, max_wait: float = 0.0, existing: bool = False
    ) -> list[Record]:
        """Put many items in few requests, each exactly once; raises PutsFailed if some were not put."""
        return self._producer.put_many(queue, items, max_wait=max_wait, existing=existing)

    def put_background(self, queue: str, item: NewItem) -> "Future[Record]":
        """Put in the background, batched with others; the future has the record or the error of `put`."""
        return self._producer.put_background(queue, item)

    def flush_puts(self, timeout: float) -> bool:
        """Wait until every background put so far is done; False if some are not after `timeout` seconds."""
        return self._producer.flush(timeout)

    # ------------------------------------------------------------------ look
    def get(self, item_id: str) -> Record:
        """One item; raises ItemNotFound, CorruptRecord."""
        return self.root.read(item_id)[0]

    def read(self, item_id: str) -> tuple[Record, int]:
        """One item and the version of its record; raises ItemNotFound, CorruptRecord."""
        return self.root.read(item_id)
