"""Operations on pools: their limits, the changes of limits, their load, their removal."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from orchestrator.admin.queue_views import QueueViews, pool_order
from orchestrator.admission.high_water import reports_in
from orchestrator.audit.trail import Trail
from orchestrator.config.live_limits import Change, ClusterConfig
from orchestrator.model.errors import NoSuchPool
from orchestrator.model.paths import Nodes
from queues import DEFAULT_POOL, LimitsChangeOperations, Operation, PoolLimits, QueueSet, read_announcements


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """The jobs of a pool in all its queues, the number of workers that serve it, and its limits.

    `water_line` is that of the running job that holds back the next ones; None while none does.
    """

    pool: str
    jobs: int
    workers: int
    limits: PoolLimits
    water_line: float | None = None


class PoolOperations:
    """Reads and changes pools. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet, config: ClusterConfig, trail: Trail) -> None:
        self._set = queue_set
        self._config = config
        self._trail = trail

    def limits(self) -> dict[str, PoolLimits]:
        """The limits of every pool, low lanes included."""
        pools = self._set.pools
        return {name: pools.read(name)[0] for name in pools.names(low=True)}

    def loads(self) -> Sequence[PoolLoad]:
        """Every pool with its jobs, its workers and its limits; each low lane follows its pool."""
        counts, limits = self._set.look.counts(), QueueViews(self._set).limits()
        members = read_announcements(self._set.session, self._set.layout).values()
        return [
            PoolLoad(
                pool,
                sum(by_pool.get(pool, 0) for by_pool in counts.values()),
                sum(member.serves(pool) for member in members),
                limits[pool],
                self._water_line(pool) if limits[pool].high_water else None,
            )
            for pool in sorted(limits, key=pool_order)
        ]

    def _water_line(self, pool: str) -> float | None:
        nodes = Nodes(self._set.layout.root)
        return max((report.line for report in reports_in(self._set.session, nodes, pool)), default=None)

    def change(self, pool: str, **limits: Any) -> PoolLimits:
        """Change limits of a pool: weight, bound, cap, paused, low_share, high_water.

        Raises InvalidLimit and NoSuchPool; then nothing is changed.
        """
        if pool == DEFAULT_POOL:  # it exists from the beginning, also before its first job
            self._set.ensure_pool()
        elif pool not in (known := self._set.pools.names(low=True)):
            raise NoSuchPool(pool, known)
        return self._set.pools.change(pool, self._recorder(pool), **limits)

    def _recorder(self, pool: str) -> LimitsChangeOperations:
        def record(
            before: Mapping[str, Any], after: Mapping[str, Any]
        ) -> tuple[dict[str, Any], Sequence[Operation]]:
            act = self._trail.act("set")
            kept = {"at": act.at, "by": act.by, "host": act.host, "before": before, "after": after}
            return kept, [self._trail.entry(act, "pool", pool, pool=pool, before=before, after=after)]

        return record

    def changes(self) -> Sequence[Change]:
        """The changes of limits, of all workers and of the existing pools, oldest first.

        Each node keeps its last ones: 20 for all workers, 10 per pool. Raises ConfigUnreadable.
        """
        changes = list(self._config.read().changes)
        for pool in self._set.pools.names(low=True):
            for kept in self._set.pools.changed(pool):
                with suppress(ValueError):  # another program has written it
                    changes.append(Change.model_validate({"version": 0, **kept, "pool": pool}))
        return sorted(changes, key=lambda change: change.at)

    def remove(self, pool: str) -> None:
        """Remove an empty pool that no worker serves by name, and its low lane.

        Raises NoSuchPool and PoolInUse; then nothing is changed. A job that arrives meanwhile creates the
        pool again.
        """
        trail = self._trail
        if not self._set.remove_pool(
            pool, lambda: [trail.entry(trail.act("remove"), "pool", pool, pool=pool)]
        ):
            raise NoSuchPool(pool, self._set.pools.names(low=True))

    def pause(self, pool: str) -> PoolLimits:
        """Start no job of a pool and of its low lane; running jobs continue. Raises NoSuchPool."""
        return self.change(pool, paused=True)

    def resume(self, pool: str) -> PoolLimits:
        """Start jobs of a pool again; raises NoSuchPool."""
        return self.change(pool, paused=False)
