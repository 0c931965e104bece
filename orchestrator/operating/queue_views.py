"""Looking at the queues without touching them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orchestrator.models.job import JobState
from orchestrator.operating.views import READ_AT_ONCE, Place, decoded
from orchestrator.operating.waits import Waits
from orchestrator.records import state_of
from orchestrator.states import Queue
from queues.errors import CorruptRecord
from queues.members import read_announcements
from queues.names import DEFAULT_POOL, LOW
from queues.pools import PoolLimits
from queues.queue import QueueSet
from queues.record import Record
from queues.session.multi_read import Found
from spark_runner.attempt import attempt_path

_Read = tuple[Record, JobState] | CorruptRecord


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


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """How many jobs a pool has in all its queues, how many workers serve it, and its limits."""

    pool: str
    jobs: int
    workers: int
    limits: PoolLimits


class QueueViews:
    """Reads queues and pools. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._session = queue_set.session
        self._layout = queue_set.layout

    def standing(self, queue: Queue, pool: str | None = None) -> list[dict[str, Any]]:
        """What stands in a queue, in the order in which it is due: id, pool, status, due, held_by, reason.

        And `waiting`, why it does not run yet, where it waits for that.
        """
        places = sorted(
            (
                Place(queue, name, token)
                for name in self._pools(pool)
                for token in self._set.tokens(queue, name)
            ),
            key=lambda place: place.token,
        )
        rows, waits = list[dict[str, Any]](), Waits(self._set)
        for start in range(0, len(places), READ_AT_ONCE):
            part = places[start : start + READ_AT_ONCE]
            records = self._session.get_many([self._layout.record(place.token.id) for place in part])
            locks = self._session.get_many([self._layout.lock(place.pool, place.token.id) for place in part])
            read = [_read(place, record) for place, record in zip(part, records, strict=True)]
            attempts = self._attempts(read) if queue is Queue.RUNNING else [None] * len(part)
            rows += [
                self._row(*row, waits) for row in zip(part, read, map(decoded, locks), attempts, strict=True)
            ]
        return rows

    def _attempts(self, read: Sequence[_Read]) -> list[dict[str, Any] | None]:
        """The last attempt of each."""
        paths = [
            attempt_path(self._layout.record(found[0].id), found[0].run_key, found[1].attempt)
            for found in read
            if not isinstance(found, CorruptRecord)
        ]
        left = iter(self._session.get_many(paths))
        return [None if isinstance(found, CorruptRecord) else decoded(next(left)) for found in read]

    def _row(
        self,
        place: Place,
        read: _Read,
        lock: dict[str, Any] | None,
        attempt: dict[str, Any] | None,
        waits: Waits,
    ) -> dict[str, Any]:
        token = place.token
        row: dict[str, Any] = {
            "id": token.id,
            "pool": place.pool,
            "status": None,
            "due": datetime.fromtimestamp(token.due / 1000, UTC).isoformat(timespec="milliseconds"),
            "held_by": (lock or {}).get("worker"),
            "reason": None,
            "waiting": None,
        }
        if isinstance(read, CorruptRecord):
            # What is buried has its reason in the token: its record was left as it was.
            note = decoded(self._session.get(self._layout.token(place.queue, place.pool, token))) or {}
            return {**row, "reason": str(note.get("reason", read))}
        record, state = read
        waiting = waits.of(record, state, lock=lock, attempt=attempt)
        told = {
            "status": state.status.value,
            "reason": state.error.message if state.error else None,
            "waiting": waiting and waiting.model_dump(exclude_defaults=True),
        }
        return row | told

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

    def pools(self) -> list[PoolLoad]:
        """Every pool, low lanes behind theirs."""
        counts, limits = self._set.look.counts(), self.limits()
        members = read_announcements(self._session, self._layout).values()
        return [
            PoolLoad(
                pool,
                sum(by_pool.get(pool, 0) for by_pool in counts.values()),
                sum(member.serves(pool) for member in members),
                limits[pool],
            )
            for pool in sorted(limits, key=lambda pool: (pool.removesuffix(LOW), pool))
        ]

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


def _read(place: Place, record: Found) -> _Read:
    try:
        found = Record.decode(place.token.id, b"" if record is None else record[0])
        return found, state_of(found)
    except CorruptRecord as error:
        return error
