"""The state that all parts of one set of queues share."""

from collections.abc import Callable, Collection, Sequence

from queues.model.errors import ItemNotFound, UnknownQueue
from queues.model.events import Event, EventKind, EventListeners
from queues.model.names import DEFAULT_POOL, Layout, check_id, check_pool
from queues.model.record import MAX_RECORD_BYTES, Record
from queues.session import Session
from queues.store.clock import EnsembleClock
from queues.store.commit import Receipts
from queues.store.pool_limits import Pools
from queues.store.pool_nodes import MAX_POOLS, PoolFolders


class Root:
    """One root in ZooKeeper: its session, its queues, its folders, its clock."""

    def __init__(
        self,
        session: Session,
        layout: Layout,
        queues: Sequence[str],
        *,
        dead: str,
        owner: str,
        max_record_bytes: int = MAX_RECORD_BYTES,
        paused_queues: Collection[str] | None = None,
        caps: bool = True,
        max_pools: Callable[[], int] = lambda: MAX_POOLS,
    ) -> None:
        self.session = session
        self.layout = layout
        self.queues = tuple(check_pool(queue) for queue in queues)
        self.dead = dead
        self.owner = owner  # the name of the holder in each lock, for display
        self.max_record_bytes = max_record_bytes
        self.caps = caps  # whether a pool's cap limits the items that are held
        # The queues that a pause of a pool affects: in a chain of queues perhaps only the first.
        self.paused_queues = frozenset(self.queues if paused_queues is None else paused_queues)
        self.clock = EnsembleClock(session, layout)
        self.pools = Pools(session, layout)
        self.receipts = Receipts(session, layout)
        self.pool_folders = PoolFolders(
            session, layout, self.queues, self.pools, max_pools=max_pools, receipts=self.receipts
        )
        self.listeners = EventListeners()
        self._buckets: set[str] = set()
        session.on_change(self._on_session_change)

    def _on_session_change(self) -> None:
        self.listeners.notify(Event(EventKind.SESSION, detail=self.session.state.value))

    def notify(
        self,
        kind: EventKind,
        before: Record,
        after: Record | None = None,
        *,
        version: int = 0,
        released: bool = False,
        seconds: float = 0.0,
        same_session: bool = True,
        detail: str = "",
    ) -> None:
        """Notify the listeners of an event of an item; `after` defaults to `before`."""
        if not self.listeners:
            return
        after = before if after is None else after
        self.listeners.notify(
            Event(
                kind,
                id=before.id,
                queue=before.queue,
                pool=before.pool,
                to_queue=after.queue,
                to_pool=after.pool,
                due=after.token.due,
                run_key=before.run_key,
                version=version,
                nonce=after.nonce,
                released=released,
                seconds=seconds,
                same_session=same_session,
                detail=detail,
            )
        )

    # ------------------------------------------------------------------ folders
    def ensure_pool(self, pool: str = DEFAULT_POOL) -> None:
        """Make the folders of a pool in every queue."""
        self.pool_folders.ensure(pool)

    def ensure_bucket(self, item_id: str) -> None:
        """Make the folder of the record of an item."""
        bucket = self.layout.record(item_id).rpartition("/")[0]
        if bucket not in self._buckets:
            self.session.ensure_path(bucket)
            self._buckets.add(bucket)

    def forget_folders(self) -> None:
        """Forget the known folders after one was removed, so that the next use checks them."""
        self._buckets.clear()
        self.pool_folders.forget()

    def check_queue(self, queue: str) -> str:
        """The name unchanged; raises UnknownQueue."""
        if queue not in self.queues:
            raise UnknownQueue(queue, self.queues)
        return queue

    # ------------------------------------------------------------------ look
    def read(self, item_id: str) -> tuple[Record, int]:
        """The record of an item and its version; raises ItemNotFound, CorruptRecord."""
        found = self.session.get(self.layout.record(check_id(item_id)))
        if found is None:
            raise ItemNotFound(item_id)
        return Record.decode(item_id, found[0]), found[1].version
