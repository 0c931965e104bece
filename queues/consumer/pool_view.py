"""One consumer's view of one pool: its backlogs, locks, requests to stop, and limits."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

from queues.claims.claim_attempt import Candidate
from queues.claims.claimer import Claimer
from queues.consumer.backlog import Backlog
from queues.consumer.membership import Membership
from queues.model.names import Token, id_of
from queues.session.wire import NodeData
from queues.store.root import Root
from queues.store.watched_folder import WatchedFolder

log = logging.getLogger(__name__)

# Locks change with every claim in the cluster: they are listed at this interval at most, and where needed.
_LOCKS_REST_SECONDS = 0.2
# Another consumer's share is left to it for this time after an item is due.
TAKE_OVER_AFTER_MS = 250
MAX_TAKEN_OVER = 50


class PoolView:
    """The tokens of one pool that seem to be free."""

    def __init__(
        self,
        root: Root,
        claimer: Claimer,
        pool: str,
        queues: Sequence[str],
        *,
        membership: Membership,
        accepts: Callable[[str], bool],
        declines: Callable[[str, str], bool],
        on_stop: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self.pool = pool
        self._membership = membership
        self._divided = -1  # the version of the membership that the shares reflect
        self.blocked_until = 0.0  # monotonic; the pool is at its cap
        self.take_over_at = 0.0  # monotonic; set after an unsuccessful take-over
        self._root = root
        self._claimer = claimer
        self._accepts = accepts
        self._declines = declines
        self._on_stop = on_stop
        self._reported: set[str] = set()
        layout, session = root.layout, root.session
        self.backlogs = [
            Backlog(
                queue,
                pool,
                WatchedFolder(session, layout.queue(queue, pool), wake, follows=True),
                self._report,
            )
            for queue in queues
        ]
        self._locks = WatchedFolder(session, layout.locks(pool), wake, rest=_LOCKS_REST_SECONDS)
        self._stops = WatchedFolder(session, layout.stops(pool), wake)
        self._locked: frozenset[str] = frozenset()
        self._stopped: frozenset[str] = frozenset()

    def _folders(self) -> list[WatchedFolder]:
        return [*(backlog.folder for backlog in self.backlogs), self._locks, self._stops]

    # ------------------------------------------------------------------ refresh
    def watched(self) -> list[str]:
        """The paths of the nodes to read in a rescan; their contents go to `notice`."""
        return [folder.path for folder in self._folders()] + [self._root.layout.pool(self.pool)]

    def notice(self, found: Sequence[NodeData | None]) -> None:
        """Compare with the watched nodes as a rescan has read them."""
        for folder, node in zip(self._folders(), found, strict=False):
            folder.notice(None if node is None else node[1])
        self._root.pools.learn(self.pool, found[-1])

    def refresh(self, now: str, *, has_capacity: bool = True, eager: bool = False) -> bool:
        """List relevant changes, or all if `eager`; True if tokens were listed.

        Without free capacity, only items to stop are relevant.
        """
        if self._divided != self._membership.version:
            self._divided = self._membership.version
            for backlog in self.backlogs:
                backlog.divide(self._membership.share(backlog.queue, self.pool))
        if self._stops.refresh():
            self._stopped = frozenset(self._stops.names)
            for item_id in self._stopped:
                if self._claimer.holds(item_id):  # its holder is notified; free items are claimed from here
                    self._on_stop(item_id)
        if not (has_capacity or self._stopped):
            return False
        listed = [backlog.refresh(now, force=eager) for backlog in self.backlogs]
        if any(listed) or any(backlog.has_deferred() for backlog in self.backlogs):
            self.refresh_locks()
        return any(listed)

    def refresh_locks(self, *, urgent: bool = False) -> None:
        """List the locks, and restore deferred tokens that are no longer locked."""
        if self._locks.refresh(urgent=urgent):
            self._locked = frozenset(self._locks.names)
            self.restore_deferred()

    def restore_deferred(self) -> None:
        """Restore the deferred tokens that are free."""
        for backlog in self.backlogs:
            backlog.restore_deferred(self._free_in(backlog))

    def locked(self) -> frozenset[str]:
        """The ids that were locked at the last listing of the locks."""
        return self._locked

    def is_free(self, item_id: str) -> bool:
        """Whether an item may be taken here and seems to be free."""
        return item_id not in self._locked and not self._claimer.holds(item_id) and self._accepts(item_id)

    def _free_in(self, backlog: Backlog) -> Callable[[str], bool]:
        """A test whether an item of this backlog is free and not declined for now."""
        return lambda item_id: self.is_free(item_id) and not self._declines(backlog.queue, item_id)

    # ------------------------------------------------------------------ candidates
    def take_stopped(self) -> list[Candidate]:
        """The items with a request to stop, regardless of due time and capacity."""
        if not self._stopped:
            return []
        candidates = []
        for backlog in self.backlogs:
            for name in backlog.find(self._stopped):
                if self.is_free(id_of(name)):
                    candidates += self._candidates(backlog, [name], stopped=True)
                else:
                    backlog.defer(name)
        return candidates

    def take(self, now: str, capacities: Mapping[str, int]) -> Candidate | None:
        """The next due item of this consumer's share in a queue with free capacity; None if there is none."""
        for backlog in self.backlogs:
            if self._locks.changed and backlog.next_id() in self._locked:
                self.refresh_locks(urgent=True)  # it may have been released: it precedes the others
            if (
                capacities[backlog.queue] > 0
                and (name := backlog.take(now, self._free_in(backlog))) is not None
            ):
                candidates = self._candidates(backlog, [name])
                if candidates:
                    return candidates[0]
        return None

    def take_over(self, due_before: str, capacities: Mapping[str, int]) -> list[Candidate]:
        """Items of other shares that their consumers have left."""
        for backlog in self.backlogs:
            limit = min(capacities[backlog.queue], MAX_TAKEN_OVER)
            due = backlog.next_due(others=True)
            if limit <= 0 or due is None or due > due_before:
                continue
            backlog.refresh(due_before, force=True)
            self.refresh_locks()
            taken = self._candidates(backlog, backlog.take_over(due_before, limit, self._free_in(backlog)))
            if taken:
                return taken
        return []

    def backlog_of(self, queue: str) -> Backlog:
        """The backlog of one queue."""
        return next(backlog for backlog in self.backlogs if backlog.queue == queue)

    def _candidates(self, backlog: Backlog, names: list[str], *, stopped: bool = False) -> list[Candidate]:
        candidates = []
        for name in names:
            token = Token.parse(name)
            if token is None:
                self._report(backlog.queue, name)
            else:
                candidates.append(Candidate(backlog.queue, self.pool, token, stopped))
        return candidates

    def _report(self, queue: str, name: str) -> None:
        if name not in self._reported:
            self._reported.add(name)
            log.warning("foreign node %r in queue %s is left alone", name, queue)

    def forget_stops(self) -> None:
        """List the requests to stop again, because one no longer exists."""
        self._stopped = frozenset()
        self._stops.changed = True

    def rearm(self) -> None:
        """List all folders again: their watches were lost with the connection."""
        for folder in self._folders():
            folder.changed = True

    # ------------------------------------------------------------------ when
    def wait(self, now_ms: int, capacities: Mapping[str, int]) -> float:
        """Seconds until a token of a queue with free capacity may be taken; infinite if there is none."""
        waits = [math.inf]
        for backlog in self.backlogs:
            if capacities[backlog.queue] <= 0:
                continue
            if (due := backlog.next_due(others=False)) is not None:
                left = (int(due, 16) - now_ms) / 1000 + 0.001
                rest = backlog.folder.rest_left(urgent=True) if backlog.must_list_first() else 0.0
                waits.append(max(left, rest))
            if (due := backlog.next_due(others=True)) is not None:
                left = (int(due, 16) + TAKE_OVER_AFTER_MS - now_ms) / 1000 + 0.001
                waits.append(max(left, self.take_over_at - time.monotonic()))
        return max(min(waits), self.blocked_until - time.monotonic())

    def rest_left(self, now: str, *, has_capacity: bool) -> float:
        """Seconds until `refresh` lists something; infinite if it would not."""
        folders = [self._stops]
        waits = [math.inf]
        if has_capacity or self._stopped:
            waits += [backlog.rest_left(now) for backlog in self.backlogs]
            if any(backlog.has_deferred() for backlog in self.backlogs):
                folders.append(self._locks)
        return min(waits + [folder.rest_left() for folder in folders])
