"""Read-only views of the queues."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orchestrator.admin.views import READ_AT_ONCE, TokenLocation, decoded
from orchestrator.admin.waits import Waits
from orchestrator.model.job import JobState, state_of
from orchestrator.model.states import Queue
from queues import DEFAULT_POOL, LOW_LANE_SUFFIX, CorruptRecord, NodeData, PoolLimits, QueueSet, Record
from spark_runner.protocol.attempt import attempt_path

_Read = tuple[Record, JobState] | CorruptRecord


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """The number of jobs in one queue of one pool, and the limits of the pool.

    The limits are None for a low lane: those of its pool apply to it, too, including a pause.
    """

    queue: Queue
    pool: str
    jobs: int
    paused: bool
    cap: int | None  # most running jobs of the pool; 0 = no limit
    weight: int | None  # turns that it gets while a pool of weight 1 gets one


class QueueViews:
    """Reads queues and pools. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet) -> None:
        self._set = queue_set
        self._session = queue_set.session
        self._layout = queue_set.layout

    def jobs_in_queue(self, queue: Queue, pool: str | None = None) -> list[dict[str, Any]]:
        """The jobs in a queue in due order: id, pool, status, due, held_by, reason, waiting.

        `waiting` is the reason why a job does not run yet; None where it does not wait.
        """
        locations = sorted(
            (
                TokenLocation(queue, name, token)
                for name in self._pools(pool)
                for token in self._set.tokens(queue, name)
            ),
            key=lambda location: location.token,
        )
        rows, waits = list[dict[str, Any]](), Waits(self._set)
        for start in range(0, len(locations), READ_AT_ONCE):
            part = locations[start : start + READ_AT_ONCE]
            records = self._session.get_many([self._layout.record(location.token.id) for location in part])
            locks = self._session.get_many(
                [self._layout.lock(location.pool, location.token.id) for location in part]
            )
            read = [_read(location, record) for location, record in zip(part, records, strict=True)]
            attempts = self._attempts(read) if queue is Queue.RUNNING else [None] * len(part)
            rows += [
                self._row(*row, waits) for row in zip(part, read, map(decoded, locks), attempts, strict=True)
            ]
        return rows

    def _attempts(self, read: Sequence[_Read]) -> list[dict[str, Any] | None]:
        """The last attempt of each job."""
        paths = [
            attempt_path(self._layout.record(found[0].id), found[0].run_key, found[1].attempt)
            for found in read
            if not isinstance(found, CorruptRecord)
        ]
        left = iter(self._session.get_many(paths))
        return [None if isinstance(found, CorruptRecord) else decoded(next(left)) for found in read]

    def _row(
        self,
        location: TokenLocation,
        read: _Read,
        lock: dict[str, Any] | None,
        attempt: dict[str, Any] | None,
        waits: Waits,
    ) -> dict[str, Any]:
        token = location.token
        row: dict[str, Any] = {
            "id": token.id,
            "pool": location.pool,
            "status": None,
            "due": datetime.fromtimestamp(token.due / 1000, UTC).isoformat(timespec="milliseconds"),
            "held_by": (lock or {}).get("worker"),
            "reason": None,
            "waiting": None,
        }
        if isinstance(read, CorruptRecord):
            # The token of an unreadable job in dead has the reason: its record was left unchanged.
            note = decoded(self._session.get(self._layout.token(location.queue, location.pool, token))) or {}
            return {**row, "reason": str(note.get("reason", read))}
        record, state = read
        waiting = waits.of(record, state, lock=lock, attempt=attempt)
        known = {
            "status": state.status.value,
            "reason": state.error.message if state.error else None,
            "waiting": waiting and waiting.model_dump(exclude_defaults=True),
        }
        return row | known

    def count(self, queue: Queue, pool: str | None = None) -> int:
        """The number of jobs in a queue, of all pools unless one is given."""
        return sum(self._set.count(queue, name) for name in self._pools(pool))

    def load(self) -> list[QueueLoad]:
        """The number of jobs in each queue of each pool, and the limits of the pools, in three requests."""
        counts, limits = self._set.look.counts(), self.limits()
        pools = sorted(limits, key=pool_order)
        loads = []
        for pool in pools:
            own, low = limits[pool], pool.endswith(LOW_LANE_SUFFIX)
            paused = own.paused or (low and limits.get(pool.removesuffix(LOW_LANE_SUFFIX), own).paused)
            binding = (None, None) if low else (own.cap, own.weight)
            loads += [QueueLoad(queue, pool, counts[queue].get(pool, 0), paused, *binding) for queue in Queue]
        return loads

    def limits(self) -> dict[str, PoolLimits]:
        """The limits of each pool, low lanes included."""
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


def pool_order(pool: str) -> tuple[str, str]:
    """The sort key of pools: each low lane follows its pool."""
    return pool.removesuffix(LOW_LANE_SUFFIX), pool


def _read(location: TokenLocation, record: NodeData | None) -> _Read:
    try:
        found = Record.decode(location.token.id, b"" if record is None else record[0])
        return found, state_of(found)
    except CorruptRecord as error:
        return error
