"""Logs the loss and the return of a connection to ZooKeeper, each once."""

import logging
from collections.abc import Callable

log = logging.getLogger(__name__)


class ConnectionLog:
    """What an operator needs to know: how long the servers were away, and whether the session survived."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._session = 0
        self._broken_at: float | None = None
        self._is_lost = False

    def broken(self) -> None:
        """Log that the connection broke."""
        self._broken_at, self._is_lost = self._clock(), False
        log.info("the connection to ZooKeeper is suspended, session %#x", self._session)

    def lost(self, reason: str) -> None:
        """Log that the session is lost, unless that was logged since the connection broke."""
        if self._session and not self._is_lost:
            self._is_lost = True
            log.warning("session %#x is lost: %s", self._session, reason)

    def connected(self, session: int, server: str) -> None:
        """Log the connection of this session to a server."""
        before, self._session = self._session, session
        if self._broken_at is None:
            log.info("connected to ZooKeeper at %s, session %#x", server, session)
            return
        away, self._broken_at = self._clock() - self._broken_at, None
        outcome = f"session {session:#x} is kept"
        if session != before:
            outcome = f"session {session:#x} replaces {before:#x}, which has ended"
        elif self._is_lost:
            outcome = f"the servers have kept session {session:#x}, but it counted as lost"
        log.info("the connection to ZooKeeper is back after %.1f s, at %s: %s", away, server, outcome)
