"""Membership of consumers, from which each computes its share of the items of a pool."""

import logging
import uuid
from collections.abc import Callable, Collection, Sequence

from queues.claims.lock_sessions import LockSessions
from queues.consumer.backlog import Share
from queues.model.codec import encode, timestamp
from queues.model.errors import Conflict, QueueError
from queues.model.operations import Create, Delete
from queues.session import Session, SessionState, Stat
from queues.store.commit import commit
from queues.store.members import ConsumerAnnouncement, read_announcements
from queues.store.root import Root
from queues.store.watched_folder import WatchedFolder

log = logging.getLogger(__name__)

# When many consumers start or end together, each is notified of each other.
_REST_SECONDS = 0.1


class Membership:
    """Announces this consumer and reads the others. Each has one ephemeral, however many pools it serves.

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
        self._folder = WatchedFolder(root.session, root.layout.consumers, wake, rest=_REST_SECONDS)
        self._members: dict[str, ConsumerAnnouncement] = {}
        self._shares: dict[tuple[str, str], Share] = {}
        # The session that made the node, and its generation.
        self._announced: tuple[Session, int] | None = None

    @property
    def folder(self) -> WatchedFolder:
        """The folder of all consumers."""
        return self._folder

    # ------------------------------------------------------------------ announcement
    def announce(self) -> None:
        """Make the node of this consumer, and again after a lost session."""
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
            if conflict.reason == "NoNode":  # the folder was removed manually
                session.ensure_path(self._root.layout.consumers)
                self._wake()
                return
            if conflict.reason != "NodeExists":
                raise
            stat = session.exists(path)
            if stat is not None and stat.owner != session.id:
                return  # the node belongs to this client's previous session: retry after that has ended
        self._announced = (session, now)

    def withdraw(self) -> None:
        """Remove the node of this consumer; without a connection it ends with the session."""
        if self._announced is None:
            return
        session, path = self._announced[0], self._root.layout.consumer(self.name)
        if session.state is SessionState.CONNECTED:
            try:
                commit(session, [Delete(path)])
            except QueueError as error:
                log.debug("the announcement of consumer %s was not removed: %s", self.name, error)
        self._sessions.give_back(session, len(path))
        self._announced = None

    # ------------------------------------------------------------------ members
    def refresh(self) -> None:
        """Read the consumers again if the folder has changed."""
        if not self._folder.refresh():
            return
        names = set(self._folder.names)
        if self._announced is not None and self.name not in names:  # its node was removed manually
            self._announced = (self._announced[0], -1)
            self._wake()
        there = {name: member for name, member in self._members.items() if name in names}
        there |= read_announcements(self._root.session, self._root.layout, names - self._members.keys())
        if there != self._members:
            self._members, self._shares = there, {}
            self.version += 1

    def notice(self, stat: Stat | None) -> None:
        """Compare with the stat of the folder that a rescan has read."""
        self._folder.notice(stat)

    def share(self, queue: str, pool: str) -> Share:
        """The items of a queue and pool that this consumer takes first."""
        some = any(member.pools is not None for member in self._members.values())
        key = (queue, pool if some else "")
        if key not in self._shares:
            takers = sorted(name for name, member in self._members.items() if member.takes(queue, pool))
            position = takers.index(self.name) if self.name in takers else None
            self._shares[key] = Share(position, max(1, len(takers)))
        return self._shares[key]
