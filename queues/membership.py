"""Who takes items of which pools, so that each consumer knows its share of them."""

import logging
import uuid
from collections.abc import Callable, Collection, Sequence

from queues.backlog import Share
from queues.documents import encode, timestamp
from queues.errors import Conflict, QueueError
from queues.folder import Folder
from queues.lock_sessions import LockSessions
from queues.members import Member, read_members
from queues.operations import Create, Delete
from queues.root import Root
from queues.session import Session, SessionState, Stat
from queues.transaction import commit

log = logging.getLogger(__name__)

# When many consumers start or end together, each of them hears of each of the others.
_REST_SECONDS = 0.1


class Membership:
    """One ephemeral per consumer, whatever the number of pools, so that the others leave it its share.

    A session that owns many paths takes the ensemble down when it ends (ZOOKEEPER-4306).
    """

    def __init__(
        self,
        root: Root,
        sessions: LockSessions,
        queues: Sequence[str],
        pools: Collection[str] | None,
        wake: Callable[[], None],
    ) -> None:
        self.name = f"{root.owner or 'consumer'}-{uuid.uuid4().hex[:6]}"
        self.version = 0  # grows with each change of the members
        self._root, self._sessions = root, sessions
        self._wake = wake
        self._queues, self._pools = list(queues), None if pools is None else sorted(pools)
        self._folder = Folder(root.session, root.layout.consumers, wake, rest=_REST_SECONDS)
        self._members: dict[str, Member] = {}
        self._shares: dict[tuple[str, str], Share] = {}
        self._announced: tuple[Session, int] | None = None  # by which session, in which of its generations

    @property
    def folder(self) -> Folder:
        """Where all consumers stand."""
        return self._folder

    # ------------------------------------------------------------------ ours
    def announce(self) -> None:
        """Be seen, again after a lost session."""
        path = self._root.layout.consumer(self.name)
        if self._announced is None:
            self._announced = (self._sessions.reserve(len(path)), -1)
        session, generation = self._announced
        if generation == session.generation:
            return
        now = session.generation
        document = encode(
            {
                "worker": self._root.owner,
                "queues": self._queues,
                "pools": self._pools,
                "since": timestamp(),
            }
        )
        try:
            commit(session, [Create(path, document, ephemeral=True)])
        except Conflict as conflict:
            if conflict.reason == "NoNode":  # the folder was removed by hand
                session.ensure_path(self._root.layout.consumers)
                self._wake()
                return
            if conflict.reason != "NodeExists":
                raise
            stat = session.exists(path)
            if stat is not None and stat.owner != session.id:
                return  # of our session before this one: it goes with it, then this is tried again
        self._announced = (session, now)

    def withdraw(self) -> None:
        """Leave the rest to the others at once; without a connection the node goes with the session."""
        if self._announced is None:
            return
        session, path = self._announced[0], self._root.layout.consumer(self.name)
        if session.state is SessionState.CONNECTED:
            try:
                commit(session, [Delete(path)])
            except QueueError as error:
                log.debug("the consumer %s has not left: %s", self.name, error)
        self._sessions.give_back(session, len(path))
        self._announced = None

    # ------------------------------------------------------------------ all
    def refresh(self) -> None:
        """Read who has come and gone."""
        if not self._folder.refresh():
            return
        names = set(self._folder.names)
        if self._announced is not None and self.name not in names:  # its node was removed by hand
            self._announced = (self._announced[0], -1)
            self._wake()
        there = {name: member for name, member in self._members.items() if name in names}
        there |= read_members(self._root.session, self._root.layout, names - self._members.keys())
        if there != self._members:
            self._members, self._shares = there, {}
            self.version += 1

    def notice(self, stat: Stat | None) -> None:
        """What a rescan has read of the folder."""
        self._folder.notice(stat)

    def share(self, queue: str, pool: str) -> Share:
        """Which items of a queue and pool this consumer takes first."""
        some = any(member.pools is not None for member in self._members.values())
        key = (queue, pool if some else "")
        if key not in self._shares:
            takers = sorted(name for name, member in self._members.items() if member.takes(queue, pool))
            place = takers.index(self.name) if self.name in takers else None
            self._shares[key] = Share(place, max(1, len(takers)))
        return self._shares[key]
