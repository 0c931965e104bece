"""The sessions that own our ephemerals; another is opened when one would own too many paths.

When a session ends, ZooKeeper writes the paths of all its ephemerals into one transaction. One that is larger
than jute.maxbuffer (1 MB) takes the whole ensemble down and keeps it from starting (ZOOKEEPER-4306).
"""

import threading

from queues.session import Session, Wake


class LockSessions:
    """Assigns each lock to a session whose limit allows its path."""

    def __init__(self, session: Session) -> None:
        self._first = session
        self._limit = session.settings.max_ephemeral_bytes
        # The server counts the folder of `hosts` too: twice, as a reservation covers a lock and a slot.
        self._extra = 2 * len(session.folder)
        self._guard = threading.Lock()
        self._used: dict[Session, int] = {session: 0}
        self._listeners: list[Wake] = []

    @property
    def first(self) -> Session:
        """The session for everything except further locks."""
        return self._first

    def __len__(self) -> int:
        """The number of sessions."""
        return len(self._used)

    def reserve(self, size: int) -> Session:
        """A session that may own `size` more bytes of names in up to two paths; a new one if all are full."""
        size += self._extra
        with self._guard:
            for session, used in self._used.items():
                if used + size <= self._limit:
                    self._used[session] = used + size
                    return session
            session = Session(self._first.settings).start()
            for wake in self._listeners:
                session.on_change(wake)
            self._used[session] = size
            return session

    def give_back(self, session: Session, size: int) -> None:
        """Release `size` bytes of a reservation."""
        with self._guard:
            if session in self._used:  # it may be closed already
                self._used[session] -= size + self._extra

    def owns(self, session_id: int) -> bool:
        """Whether one of these sessions has this id."""
        return any(session.id == session_id for session in tuple(self._used))

    def on_change(self, wake: Wake) -> None:
        """Call `wake` at each connection change of any of these sessions."""
        with self._guard:
            self._listeners.append(wake)
            for session in self._used:
                session.on_change(wake)

    def close(self) -> None:
        """Close the sessions opened here; the first belongs to the caller that opened it."""
        with self._guard:
            for session in self._used:
                if session is not self._first:
                    session.close()
            self._used = {self._first: 0}
