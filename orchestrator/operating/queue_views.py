"""Looking at the queues without touching them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orchestrator.operating.views import READ_AT_ONCE, Place, decoded
from orchestrator.records import view_of
from orchestrator.states import Queue
from queues.errors import CorruptRecord
from queues.names import DEFAULT_POOL, LOW
from queues.pools import PoolLimits
from queues.queue import QueueSet
from queues.record import Record
from queues.session.multi_read import Found


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """How many jobs stand in one queue of one pool, and what binds the pool.

    The limits are None for a low lane: those of its pool hold for it too, a pause among them.
    """

    queue: Queue
    pool: str
    jobs: int
    paused: bool
    cap: int | None  # running jobs of the pool at most; 0 = no limit
    weight: int | None  # turns that it gets while other pools get one


class QueueViews:
    """Reads queues and pools. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._session = queue_set.session
        self._layout = queue_set.layout

    def standing(self, queue: Queue, pool: str | None = None) -> list[dict[str, Any]]:
        """What stands in a queue, in the order in which it is due: id, pool, status, due, held_by, reason."""
        places = sorted(
            (
                Place(queue, name, token)
                for name in self._pools(pool)
                for token in self._set.tokens(queue, name)
            ),
            key=lambda place: place.token,
        )
        rows = list[dict[str, Any]]()
        for start in range(0, len(places), READ_AT_ONCE):
            part = places[start : start + READ_AT_ONCE]
            records = self._session.get_many([self._layout.record(place.token.id) for place in part])
            locks = self._session.get_many([self._layout.lock(place.pool, place.token.id) for place in part])
            rows += [self._row(*read) for read in zip(part, records, locks, strict=True)]
        return rows

    def _row(self, place: Place, record: Found, lock: Found) -> dict[str, Any]:
        token = place.token
        row: dict[str, Any] = {
            "id": token.id,
            "pool": place.pool,
            "status": None,
            "due": datetime.fromtimestamp(token.due / 1000, UTC).isoformat(timespec="milliseconds"),
            "held_by": (decoded(lock) or {}).get("worker"),
            "reason": None,
        }
        try:
            view = view_of(Record.decode(token.id, b"" if record is None else record[0]))
        except CorruptRecord as error:
            # What is buried has its reason in the token: its record was left as it was.
            note = decoded(self._session.get(self._layout.token(place.queue, place.pool, token))) or {}
            return {**row, "reason": note.get("reason", str(error))}
        return {**row, "status": view.status.value, "reason": view.error.message if view.error else None}

    def count(self, queue: Queue, pool: str | None = None) -> int:
        """How many stand in a queue."""
        return sum(self._set.count(queue, name) for name in self._pools(pool))

    def load(self) -> list[QueueLoad]:
        """How many stand in each queue of each pool, and what binds the pools; in three requests."""
        counts, limits = self._set.look.counts(), self.limits()
        pools = sorted(limits, key=lambda pool: (pool.removesuffix(LOW), pool))
        loads = []
        for pool in pools:
            own, low = limits[pool], pool.endswith(LOW)
            paused = own.paused or (low and limits.get(pool.removesuffix(LOW), own).paused)
            binding = (None, None) if low else (own.cap, own.weight)
            loads += [QueueLoad(queue, pool, counts[queue].get(pool, 0), paused, *binding) for queue in Queue]
        return loads

    def limits(self) -> dict[str, PoolLimits]:
        """The limits of each pool, low lanes among them."""
        pools = self._pools(None)
        nodes = self._session.get_many([self._layout.pool(pool) for pool in pools])
        return {
            pool: PoolLimits() if node is None else PoolLimits.decode(pool, node[0])
            for pool, node in zip(pools, nodes, strict=True)
        }

    def _pools(self, pool: str | None) -> Sequence[str]:
        if pool is not None:
            return (pool,)
        return sorted({DEFAULT_POOL, *self._set.pools.names(low=True)})
