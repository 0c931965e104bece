"""One consumer's views of all pools that it serves, and the turns of the pools."""

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from queues.claims.claim_attempt import Candidate
from queues.claims.claimer import Claimer
from queues.claims.orphan_locks import release_orphan_locks
from queues.consumer.membership import Membership
from queues.consumer.pool_view import TAKE_OVER_AFTER_MS, PoolView
from queues.consumer.rotation import Rotation, TimeBudget
from queues.model.names import LOW_LANE_SUFFIX, is_pool
from queues.store.root import Root
from queues.store.watched_folder import WatchedFolder

# The share of the time for optional listings, which find items with an earlier due time. Unused time is
# saved, so that the order is strict unless the load is high.
_EXTRA_SHARE = 0.05
_EXTRA_BURST_SECONDS = 0.05
_ARRANGE_SECONDS = 0.2  # of a round for new pools: thousands of them must not delay the other pools
_GONE_SECONDS = 0.2  # between claims in a pool whose node is gone

Capacities = Mapping[str, int]
"""The number of items of each queue that may be taken now."""

PoolCapacity = Callable[[str, str], int | None]
"""Returns the number of items of a queue (first) and a pool that may be taken now; None = no limit."""


class PoolViews:
    """Views of the pools by name, low lanes included.

    `pools`: names, or names with weights that override those of the pools themselves, or None for all
    existing pools.
    """

    def __init__(
        self,
        root: Root,
        claimer: Claimer,
        queues: Sequence[str],
        pools: Mapping[str, int] | Sequence[str] | None,
        *,
        accepts: Callable[[str], bool],
        declines: Callable[[str, str], bool],
        pool_capacity: PoolCapacity,
        on_stop: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._root = root
        self._claimer = claimer
        self._queues = tuple(queues)
        self._pools = None if pools is None else tuple(pools)
        self._weights = dict(pools) if isinstance(pools, Mapping) else {}
        self._accepts = accepts
        self._declines = declines
        self._pool_capacity = pool_capacity
        self._on_stop = on_stop
        self._wake = wake
        self._views: dict[str, PoolView] = {}
        self._unserved: list[str] = []  # listed, not served yet
        self._names = WatchedFolder(root.session, root.layout.pools, wake)
        self._membership = Membership(root, claimer.sessions, queues, self._pools, wake)
        self._rotation: Rotation[Candidate] = Rotation()
        self._extra = TimeBudget(_EXTRA_SHARE, _EXTRA_BURST_SECONDS)

    def __getitem__(self, pool: str) -> PoolView:
        return self._views[pool]

    def get(self, pool: str) -> PoolView | None:
        """The view of a pool, None if the pool is not served."""
        return self._views.get(pool)

    def start(self) -> None:
        """Make the folders that this consumer watches."""
        for pool in self._pools or ():
            self._root.ensure_pool(pool)
        for folder in (self._root.layout.pools, self._root.layout.consumers):
            self._root.session.ensure_path(folder)

    def stop(self) -> None:
        """Withdraw this consumer's announcement: it takes no more items."""
        self._membership.withdraw()

    # ------------------------------------------------------------------ refresh
    def rearm(self) -> None:
        """List all folders again: their watches were lost with the connection."""
        self._names.changed = self._membership.folder.changed = True
        for view in self._views.values():
            view.rearm()

    def rescan(self) -> None:
        """Check all folders regardless of their watches, hundreds of them in one request."""
        views = list(self._views.values())
        watched = [view.watched() for view in views]
        folders = (self._names, self._membership.folder)
        paths = [*(folder.path for folder in folders), *(path for paths in watched for path in paths)]
        found = self._root.session.get_many(paths)
        for folder, node in zip(folders, found, strict=False):
            folder.notice(None if node is None else node[1])
        start = len(folders)
        for view, paths in zip(views, watched, strict=True):
            nodes = found[start : start + len(paths)]
            view.notice(nodes)
            start += len(paths)
            if None in nodes and not self._restore(view.pool):
                continue  # the pool is gone
            view.refresh_locks()
            view.restore_deferred()
            capped = self._root.pools.limits(view.pool, self._wake)[0].cap > 0
            locked = view.locked()
            if (locked or capped) and release_orphan_locks(self._root, self._claimer, view.pool, locked):
                view.rearm()

    def refresh(self) -> None:
        """Serve the existing pools and their low lanes."""
        if self._names.refresh(urgent=True):  # the items of a new pool wait for it
            try:
                self._arrange()
            except BaseException:
                self._names.changed = True  # no watch fires again for pools that are not served yet
                raise
        until = time.monotonic() + _ARRANGE_SECONDS
        while self._unserved:
            self._serve(self._unserved[-1])
            self._unserved.pop()
            if time.monotonic() >= until:
                break
        self._membership.announce()
        self._membership.refresh()

    def reconsider(self, pools: Iterable[str]) -> None:
        """Refresh stale limits, and restore pools whose node is missing: they would stay unclaimable."""
        for pool in pools:
            gone = [
                name
                for name in dict.fromkeys((pool, pool.removesuffix(LOW_LANE_SUFFIX)))
                if self._root.pools.limits(name, self._wake)[1] < 0
            ]
            if gone:
                self._views[pool].blocked_until = time.monotonic() + _GONE_SECONDS
            for name in gone:
                self._restore(name)

    def _restore(self, pool: str) -> bool:
        """Restore a pool whose nodes were removed manually in part; False if the whole pool was removed."""
        if not self._root.pool_folders.restore(pool):
            self._names.changed = True
            return False
        self._root.pools.forget(pool)
        if (view := self._views.get(pool)) is not None:
            view.rearm()
        return True

    def _arrange(self) -> None:
        there = set(filter(is_pool, self._names.names))  # other names are foreign nodes
        self._root.pool_folders.forget(there)
        there |= {pool for pool in self._views.keys() - there if self._restore(pool)}
        mains = (
            [pool for pool in there if not pool.endswith(LOW_LANE_SUFFIX)]
            if self._pools is None
            else self._pools
        )
        pools = [
            name for main in mains for name in (main, main + LOW_LANE_SUFFIX) if name == main or name in there
        ]
        self._unserved = [pool for pool in pools if pool not in self._views or pool not in there]
        served = set(pools)
        self._views = {pool: view for pool, view in self._views.items() if pool in served}
        self._rotation.keep(set(mains))

    def _serve(self, pool: str) -> None:
        if pool in (self._pools or ()):
            self._root.ensure_pool(pool)
        elif not self._restore(pool):  # removed since it was listed: it must not be made again
            return
        if pool not in self._views:
            self._views[pool] = PoolView(
                self._root,
                self._claimer,
                pool,
                self._queues,
                membership=self._membership,
                accepts=self._accepts,
                declines=self._declines,
                on_stop=self._on_stop,
                wake=self._wake,
            )

    # ------------------------------------------------------------------ turns
    def pick(self, capacities: Capacities, total: int) -> list[Candidate]:
        """The next candidates: up to `total` items, and all with a request to stop."""
        now_ms = self._root.clock.now_ms()
        now, left = f"{now_ms:011x}", dict(capacities)
        has_capacity = total > 0 and any(free > 0 for free in left.values())
        candidates: list[Candidate] = []
        serving: dict[str, PoolView] = {}
        bounds: dict[str, dict[str, int]] = {}
        for pool, view in tuple(self._views.items()):
            self._refresh(view, now, has_capacity=has_capacity)
            candidates += view.take_stopped()
            if time.monotonic() >= view.blocked_until:
                serving[pool], bounds[pool] = view, self._bounds(pool)
            if not pool.endswith(LOW_LANE_SUFFIX):
                limits = self._root.pools.limits(pool, self._wake)[0]
                self._rotation.arrange(pool, self._weights.get(pool, limits.weight), limits.low_share)

        def take(pool: str, low: bool) -> Candidate | None:
            name = pool + LOW_LANE_SUFFIX if low else pool
            if (view := serving.get(name)) is None:
                return None
            bound = bounds[name]
            candidate = view.take(now, _within(left, bound))
            if candidate is not None:
                left[candidate.queue] -= 1
                if candidate.queue in bound:
                    bound[candidate.queue] -= 1
            return candidate

        if has_capacity:
            candidates += self._rotation.collect(take, total)
            if not candidates:
                left = {queue: min(free, total) for queue, free in left.items()}
                candidates = self._take_over(serving, bounds, f"{now_ms - TAKE_OVER_AFTER_MS:011x}", left)
        return candidates

    def _refresh(self, view: PoolView, now: str, *, has_capacity: bool) -> None:
        started = time.monotonic()
        if view.refresh(now, has_capacity=has_capacity, eager=self._extra.is_left()):
            self._extra.spend(time.monotonic() - started)
            self._views[view.pool] = self._views.pop(view.pool)  # other pools come first next time

    def _take_over(
        self,
        serving: Mapping[str, PoolView],
        bounds: Mapping[str, Mapping[str, int]],
        due_before: str,
        capacities: Capacities,
    ) -> list[Candidate]:
        views = [view for view in serving.values() if time.monotonic() >= view.take_over_at]
        random.shuffle(views)
        for view in views:
            if taken := view.take_over(due_before, _within(capacities, bounds[view.pool])):
                return taken
        return []

    def pause(self, capacities: Capacities) -> float:
        """Seconds until there may be work unless a watch fires earlier; infinite if nothing is due."""
        now_ms = self._root.clock.now_ms()
        has_capacity = any(free > 0 for free in capacities.values())
        if self._unserved:
            return 0.0
        # No watch fires again for a pool that was added during the rest.
        pauses = [self._names.rest_left(urgent=True), self._membership.folder.rest_left()]
        for pool, view in self._views.items():
            pauses.append(view.rest_left(f"{now_ms:011x}", has_capacity=has_capacity))
            pauses.append(
                view.wait(now_ms, _within(capacities, self._bounds(pool)))
            )  # a change of limits wakes the loop
        return min(pauses)

    def _bounds(self, pool: str) -> dict[str, int]:
        """The number of items of a pool that may be taken, for the queues with a limit."""
        # A pause of a pool includes its low lane.
        names = {pool, pool.removesuffix(LOW_LANE_SUFFIX)}
        if any(self._root.pools.limits(name, self._wake)[0].paused for name in names):
            return dict.fromkeys(self._root.paused_queues, 0)
        capacities = {queue: self._pool_capacity(queue, pool) for queue in self._queues}
        return {queue: free for queue, free in capacities.items() if free is not None}


def _within(capacities: Capacities, bound: Mapping[str, int]) -> Capacities:
    if not bound:
        return capacities
    return {queue: min(free, bound.get(queue, free)) for queue, free in capacities.items()}
