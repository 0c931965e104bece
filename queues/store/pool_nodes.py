"""The nodes of a pool: made together, restored after manual damage, and removed together."""

import logging
import posixpath
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from queues.model.codec import encode
from queues.model.errors import Conflict, PoolInUse, TooManyPools
from queues.model.names import LOW_LANE_SUFFIX, Layout, check_pool, is_pool
from queues.model.operations import Check, Create, Delete, Operation
from queues.session import Session
from queues.session.wire import NodeData
from queues.store.batch import commit_once
from queues.store.commit import Receipts, commit
from queues.store.members import read_announcements
from queues.store.pool_limits import Pools

log = logging.getLogger(__name__)

MAX_POOLS = 1_000
"""Low lanes count too. Each pool costs every consumer some 10 watches, and time at each rescan."""


class PoolFolders:
    """Makes and removes all nodes of a pool in one multi, so that no folder exists without its pool.

    A token in a folder of an unlisted pool would never be found.
    """

    def __init__(
        self,
        session: Session,
        layout: Layout,
        queues: Sequence[str],
        pools: Pools,
        *,
        max_pools: Callable[[], int],
        receipts: Receipts,
    ) -> None:
        self._session, self._layout, self._queues, self._pools = session, layout, queues, pools
        self._max_pools, self._receipts = max_pools, receipts
        self._made: set[str] = set()

    # ------------------------------------------------------------------ make
    def ensure(self, pool: str, *, bounded: bool = False) -> None:
        """Make the missing nodes of a pool, and of the pool whose low lane it is.

        `bounded`: raise TooManyPools if the pool would exceed the limit.
        """
        while pool not in self._made:
            missing, there = self._look(check_pool(pool))
            self._make(pool, missing, there, bounded=bounded)

    def restore(self, pool: str) -> bool:
        """Restore nodes that were removed manually, with the last known limits; False if none is left."""
        self._made.discard(pool)
        while pool not in self._made:
            missing, there = self._look(pool)
            if not there:
                return False
            if missing:
                log.warning("pool %s lacks nodes, which are restored: %s", pool, missing)
            self._make(pool, missing, there, bounded=False)
        return True

    def restore_unnamed(self) -> None:
        """Make the node of each unlisted pool that has items: no consumer would serve it."""
        named = set(self._pools.names(low=True))
        for queue in self._queues:
            folder = self._layout.queue(queue, "").rstrip("/")
            pools = [pool for pool in self._session.children(folder) or () if is_pool(pool)]
            pools = [pool for pool in pools if pool not in named]
            found = self._session.get_many([self._layout.queue(queue, pool) for pool in pools])
            for pool, node in zip(pools, found, strict=True):
                if node is not None and node[1].children:
                    self.restore(pool)

    def forget(self, there: Iterable[str] = ()) -> None:
        """Check all pools except these again before their next use."""
        self._made.intersection_update(there)

    def _folders(self, pool: str) -> list[str]:
        layout = self._layout
        folders = [layout.queue(queue, pool) for queue in self._queues]
        return [layout.pool(pool), *folders, layout.locks(pool), layout.stops(pool), layout.holds(pool)]

    def _look(self, pool: str) -> tuple[list[str], list[str]]:
        """The missing nodes, and the existing ones."""
        folders = self._folders(pool)
        # Usually all exist: one request shows it, where each alone would take a round trip or more.
        found = list(zip(folders, self._session.get_many(folders), strict=True))
        return [path for path, node in found if node is None], [path for path, node in found if node]

    def _make(self, pool: str, missing: Sequence[str], there: Sequence[str], *, bounded: bool) -> None:
        main = pool.removesuffix(LOW_LANE_SUFFIX)
        if bounded and self._layout.pool(pool) in missing:
            self.check_number(pool)
        if missing and main != pool:
            self.ensure(main)
        if missing:
            try:
                commit(self._session, self._making(pool, missing, there))
            except Conflict:  # another client makes or removes it: check again
                self._made.discard(main)
                return
        self._made.add(pool)

    def _making(self, pool: str, missing: Sequence[str], there: Sequence[str]) -> list[Operation]:
        above = dict.fromkeys(posixpath.dirname(path) for path in missing)
        for path, node in zip(above, self._session.get_many(list(above)), strict=True):
            if node is None:
                self._session.ensure_path(path)
        limits = self._pools.last_good(pool) if there else None
        data = b"" if limits is None else encode(asdict(limits))
        main = pool.removesuffix(LOW_LANE_SUFFIX)
        operations: list[Operation] = [] if main == pool else [Check(self._layout.pool(main))]
        operations += [Check(path) for path in there]
        return operations + [
            Create(path, data if path == self._layout.pool(pool) else b"") for path in missing
        ]

    def check_number(self, pool: str) -> None:
        """Raise TooManyPools if this pool is new, and there are as many as allowed."""
        stat, limit = self._session.exists(self._layout.pools), self._max_pools()
        names = dict.fromkeys((pool, pool.removesuffix(LOW_LANE_SUFFIX)))
        new = self._session.get_many([self._layout.pool(name) for name in names]).count(None)
        if new and stat is not None and stat.children + new > limit:
            raise TooManyPools(pool, limit)

    # ------------------------------------------------------------------ remove
    def remove(self, pool: str, extra_operations: Callable[[], Sequence[Operation]] = tuple) -> bool:
        """Remove an empty pool that no consumer names, with its low lane; False if there is no such pool.

        Raises PoolInUse. One multi removes all nodes or none; `extra_operations` is called for each try. A
        folder that contains a token is not removed: a concurrent put is either faster, or finds no folder
        and makes the pool again.
        """
        lane = check_pool(pool) + LOW_LANE_SUFFIX
        while True:
            nodes = [self._layout.pool(name) for name in (pool, lane) if is_pool(name)]
            # By each of their nodes, so that a partly removed pool is removed as well.
            has_own, *low = (bool(self._look(name)[1]) for name in (pool, lane) if is_pool(name))
            if not (has_own or any(low)):
                return False
            pools = [lane, pool] if any(low) else [pool]
            operations: list[Operation] = []
            if low and not any(low):  # and still is in the multi
                operations += [Create(nodes[1]), Delete(nodes[1])]
            for name in pools:
                self.forget(self._made - {name})
                self.ensure(name)
                operations += [Delete(path) for path in reversed(self._folders(name))]
            self._check_use(pool, pools)
            # A receipt: a resend must not remove a pool that was recreated meanwhile.
            if commit_once(self._session, [*operations, *extra_operations()], self._receipts):
                self.forget(self._made - set(pools))
                return True
            # It is in use now, or another client removes it.

    def _check_use(self, pool: str, lanes: Sequence[str]) -> None:
        paths = [path for lane in lanes for path in self._folders(lane)]
        found: Sequence[NodeData | None] = self._session.get_many(paths)
        used = [
            f"{node[1].children:,} in {path}"
            for path, node in zip(paths, found, strict=True)
            if node is not None and node[1].children
        ]
        if used:
            raise PoolInUse(pool, f"there are nodes in it: {', '.join(used)}")
        members = read_announcements(self._session, self._layout)
        if serving := sorted(name for name, member in members.items() if pool in (member.pools or ())):
            raise PoolInUse(pool, f"it is served by name: {', '.join(serving)}")
