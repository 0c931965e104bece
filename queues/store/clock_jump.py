"""A jump of the ensemble's clock, as clients that saw it report it to later ones."""

import contextlib
import logging

from queues.model.codec import decode, encode, timestamp
from queues.model.errors import Conflict, QueueError
from queues.model.names import Layout
from queues.model.operations import Create, Delete, Set
from queues.session import Session
from queues.store.commit import commit

log = logging.getLogger(__name__)

_SAME_MS = 2_000


class ClockJump:
    """The node that stores by how much the ensemble's clock is off, and the message in the log.

    It is an ephemeral: a jump counts only while a client lives that saw the clock before. A client that
    cannot write or read it goes on without.
    """

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session, self._path = session, layout.clock_jump
        self._ahead_ms = 0  # as this client reports it

    def found_ms(self) -> int:
        """By how much other clients report that the ensemble's clock is ahead; 0 without a report."""
        try:
            found = self._session.get(self._path)
            return 0 if found is None else int(decode(found[0])["ahead_ms"])
        except (QueueError, ValueError, KeyError, TypeError, OverflowError) as error:
            log.warning("%s cannot be read: %s", self._path, error)
            return 0

    def keep(self, ahead_ms: int) -> None:
        """The time goes on as it was, though the ensemble's clock is ahead of it by so much."""
        if abs(ahead_ms - self._ahead_ms) > _SAME_MS:
            log.warning(
                "the ensemble's clock is suddenly %.1f s %s, and that of this host does not confirm it: the "
                "time goes on as it was until it does; check the time service of the ZooKeeper servers",
                abs(ahead_ms) / 1000,
                "ahead" if ahead_ms > 0 else "behind",
            )
        self._ahead_ms = ahead_ms
        data = encode({"ahead_ms": ahead_ms, "since": timestamp()})
        try:
            try:
                commit(self._session, [Set(self._path, data, -1)])
            except Conflict:
                commit(self._session, [Create(self._path, data, ephemeral=True)])
        except Conflict:
            pass  # another client was faster
        except QueueError as error:
            log.warning("%s cannot be written: %s", self._path, error)

    def end(self) -> None:
        """The time is the ensemble's again."""
        if not self._ahead_ms:
            return
        log.warning("the time is that of the ensemble's clock again")
        self._ahead_ms = 0
        with contextlib.suppress(QueueError):  # gone already, or it goes with the session of who made it
            commit(self._session, [Delete(self._path)])
