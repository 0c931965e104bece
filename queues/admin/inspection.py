"""Read-only views of items, queues and locks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from queues.model.codec import decode
from queues.model.errors import CorruptRecord
from queues.model.names import Token, check_id, id_of, order_of
from queues.model.record import Record
from queues.session import Stat
from queues.store.root import Root

_READ_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of an item. `since` is ISO 8601 by the holder's clock, `seconds` by the ensemble's."""

    id: str
    pool: str
    worker: str
    since: str
    seconds: float
    session: int


@dataclass(frozen=True, slots=True)
class Page:
    """Some items of a queue; `after` starts the next page, None at the end."""

    items: tuple[Record, ...]
    after: str | None


class Inspection:
    """Reads items, counts, ages and holders."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def contains(self, item_id: str) -> bool:
        """Whether an item has this id."""
        return self._root.session.exists(self._root.layout.record(check_id(item_id))) is not None

    def tokens(self, queue: str, pool: str) -> list[Token]:
        """The tokens of a queue in due order, without foreign nodes."""
        names, _ = self.listing(queue, pool)
        # As text, which Python compares five times as fast: due time and sequence have a fixed width.
        names.sort(key=lambda name: order_of(name) + id_of(name))
        return [token for name in names if (token := Token.parse(name)) is not None]

    def listing(self, queue: str, pool: str) -> tuple[list[str], int]:
        """The names of the nodes in a queue, foreign ones included, and the `children_zxid` of the folder."""
        listed = self._root.session.listing(self._root.layout.queue(queue, pool))
        return ([], 0) if listed is None else (listed[0], listed[1].children_zxid)

    def page(
        self,
        queue: str,
        pool: str,
        *,
        where: Callable[[Record], bool] = lambda _record: True,
        after: str | None = None,
        limit: int = 100,
    ) -> Page:
        """Up to `limit` items that satisfy `where`, in due order, from `after` on.

        Unreadable items are omitted: dead lists them.
        """
        matching = (record for record in self._records(queue, pool, after) if where(record))
        items = tuple(islice(matching, limit))
        last = order_of(items[-1].token.name) + items[-1].id if len(items) == limit and items else None
        return Page(items, last)

    def _records(self, queue: str, pool: str, after: str | None) -> Iterator[Record]:
        root = self._root
        tokens = self.tokens(queue, pool)
        if after is not None:
            tokens = [token for token in tokens if order_of(token.name) + token.id > after]
        for start in range(0, len(tokens), _READ_AT_ONCE):
            part = tokens[start : start + _READ_AT_ONCE]
            found = root.session.get_many([root.layout.record(token.id) for token in part])
            for token, node in zip(part, found, strict=True):
                if node is None:
                    continue
                try:
                    yield Record.decode(token.id, node[0])
                except CorruptRecord:
                    continue

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """The number of nodes in each queue, by pool; read from the stats of the folders in one request."""
        counts: dict[str, dict[str, int]] = {queue: {} for queue in self._root.queues}
        for (queue, pool), stat in self.folders().items():
            counts[queue][pool] = 0 if stat is None else stat.children
        return counts

    def folders(self) -> Mapping[tuple[str, str], Stat | None]:
        """The stat of the folder of each queue and pool, None for a missing one; read in one request."""
        root = self._root
        pools = root.pools.names(low=True)
        locations = [(queue, pool) for queue in root.queues for pool in pools]
        found = root.session.get_many([root.layout.queue(queue, pool) for queue, pool in locations])
        return {
            location: None if node is None else node[1]
            for location, node in zip(locations, found, strict=True)
        }

    def count(self, queue: str, pool: str) -> int:
        """The number of nodes in one queue of a pool, without listing them."""
        stat = self._root.session.exists(self._root.layout.queue(queue, pool))
        return 0 if stat is None else stat.children

    def next_due(self, queue: str, pool: str) -> Token | None:
        """The token that is due first; None if the queue is empty."""
        return min(self.tokens(queue, pool), default=None)

    def oldest_seconds(self, queue: str, pool: str) -> float:
        """Seconds since the oldest item of a queue was put, by its sequence; 0 if the queue is empty."""
        first = min((token.seq for token in self.tokens(queue, pool)), default=None)
        return 0.0 if first is None else max(0.0, self._root.clock.now_ms() / 1000 - first / 1_000_000)

    def held(self, pool: str) -> list[Holder]:
        """The holders of the items of a pool."""
        root = self._root
        ids = sorted(root.session.children(root.layout.locks(pool)) or ())
        now = root.clock.now_ms()
        holders = []
        found = root.session.get_many([root.layout.lock(pool, item_id) for item_id in ids])
        for item_id, node in zip(ids, found, strict=True):
            if node is None:
                continue  # released meanwhile
            try:
                document = decode(node[0])
            except ValueError:
                document = {}
            holders.append(
                Holder(
                    id=item_id,
                    pool=pool,
                    worker=str(document.get("worker", "")),
                    since=str(document.get("since", "")),
                    seconds=max(0.0, (now - node[1].created) / 1000),
                    session=node[1].owner,
                )
            )
        return holders
