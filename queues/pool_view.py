"""What one consumer sees of one pool: its backlogs, locks, stops, fellow consumers and limits."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence

from queues.backlog import Backlog
from queues.claim_attempt import Candidate
from queues.claimer import Claimer
from queues.folder import WatchedFolder
from queues.membership import Membership
from queues.names import Token, id_of
from queues.root import Root
from queues.session.multi_read import Found

log = logging.getLogger(__name__)

# Locks come and go with every claim of anybody: they are listed again only so often, and where it matters.
_LOCKS_REST_SECONDS = 0.2
# What falls to another consumer is left to it for so long after it is due.
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
        self._divided = -1  # by which version of the membership
        self.blocked_until = 0.0  # monotonic; the pool is at its cap
        self.take_over_at = 0.0  # monotonic; a round of stealing was in vain
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
        """The nodes whose change is of interest here; the answer goes to `notice`."""
        return [folder.path for folder in self._folders()] + [self._root.layout.pool(self.pool)]

    def notice(self, found: Sequence[Found]) -> None:
        """What a rescan has read of the watched nodes."""
        for folder, node in zip(self._folders(), found, strict=False):
            folder.notice(None if node is None else node[1])
        self._root.pools.learn(self.pool, found[-1])

    def refresh(self, now: str, *, has_room: bool = True, eager: bool = False) -> bool:
        """List what has changed and matters now, or may matter when `eager`; True when tokens were listed.

        Without room for anything, only what shall stop matters.
        """
        if self._divided != self._membership.version:
            self._divided = self._membership.version
            for backlog in self.backlogs:
                backlog.divide(self._membership.share(backlog.queue, self.pool))
        if self._stops.refresh():
            self._stopped = frozenset(self._stops.names)
            for item_id in self._stopped:
                if self._claimer.holds(item_id):  # who has it in hand is told, all others take it from here
                    self._on_stop(item_id)
        if not (has_room or self._stopped):
            return False
        listed = [backlog.refresh(now, force=eager) for backlog in self.backlogs]
        if any(listed) or any(backlog.has_deferred() for backlog in self.backlogs):
            self.refresh_locks()
        return any(listed)

    def refresh_locks(self, *, urgent: bool = False) -> None:
        """List the locks, and bring back what is not locked any more."""
        if self._locks.refresh(urgent=urgent):
            self._locked = frozenset(self._locks.names)
            self.restore_deferred()

    def restore_deferred(self) -> None:
        """Consider again what was put aside."""
        for backlog in self.backlogs:
            backlog.restore_deferred(self._free_in(backlog))

    def locked(self) -> frozenset[str]:
        """The ids that were locked when the locks were listed last."""
        return self._locked

    def is_free(self, item_id: str) -> bool:
        """Whether nobody seems to hold an item that may be taken here."""
        return item_id not in self._locked and not self._claimer.holds(item_id) and self._accepts(item_id)

    def _free_in(self, backlog: Backlog) -> Callable[[str], bool]:
        """Whether an item of this backlog is free, and not to be left for now."""
        return lambda item_id: self.is_free(item_id) and not self._declines(backlog.queue, item_id)

    # ------------------------------------------------------------------ candidates
    def take_stopped(self) -> list[Candidate]:
        """The items that somebody asked to stop: due or not, room or not."""
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

    def take(self, now: str, room: Mapping[str, int]) -> Candidate | None:
        """The next item of our share that is due, of a queue with room; None when there is none."""
        for backlog in self.backlogs:
            if self._locks.changed and backlog.next_id() in self._locked:
                self.refresh_locks(urgent=True)  # it may have been let go: its turn is before the others'
            if room[backlog.queue] > 0 and (name := backlog.take(now, self._free_in(backlog))) is not None:
                candidates = self._candidates(backlog, [name])
                if candidates:
                    return candidates[0]
        return None

    def take_over(self, due_before: str, room: Mapping[str, int]) -> list[Candidate]:
        """Items of other consumers' shares that these leave lying."""
        for backlog in self.backlogs:
            limit = min(room[backlog.queue], MAX_TAKEN_OVER)
            due = backlog.next_due(others=True)
            if limit <= 0 or due is None or due > due_before:
                continue
            backlog.refresh(due_before, force=True)
            self.refresh_locks()
            stolen = self._candidates(backlog, backlog.take_over(due_before, limit, self._free_in(backlog)))
            if stolen:
                return stolen
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
        """A request to stop that was seen here is gone: list them again."""
        self._stopped = frozenset()
        self._stops.changed = True

    def rearm(self) -> None:
        """The watches are gone with the connection: only a listing sets them again."""
        for folder in self._folders():
            folder.changed = True

    # ------------------------------------------------------------------ when
    def wait(self, now_ms: int, room: Mapping[str, int]) -> float:
        """Seconds until a token of a queue with room may be taken; infinite when nothing is in sight."""
        waits = [math.inf]
        for backlog in self.backlogs:
            if room[backlog.queue] <= 0:
                continue
            if (due := backlog.next_due(others=False)) is not None:
                left = (int(due, 16) - now_ms) / 1000 + 0.001
                rest = backlog.folder.rest_left(urgent=True) if backlog.must_list_first() else 0.0
                waits.append(max(left, rest))
            if (due := backlog.next_due(others=True)) is not None:
                left = (int(due, 16) + TAKE_OVER_AFTER_MS - now_ms) / 1000 + 0.001
                waits.append(max(left, self.take_over_at - time.monotonic()))
        return max(min(waits), self.blocked_until - time.monotonic())

    def rest_left(self, now: str, *, has_room: bool) -> float:
        """Seconds until `refresh` will list something; infinite when it would not."""
        folders = [self._stops]
        waits = [math.inf]
        if has_room or self._stopped:
            waits += [backlog.rest_left(now) for backlog in self.backlogs]
            if any(backlog.has_deferred() for backlog in self.backlogs):
                folders.append(self._locks)
        return min(waits + [folder.rest_left() for folder in folders])
