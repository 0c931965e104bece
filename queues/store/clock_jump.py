"""The record of a jump of the ensemble's clock, for clients that connect after it."""

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
    """The node that records by how much the ensemble's clock is off, and the log messages about it.

    The node is ephemeral: a jump counts only while a client that saw the clock before it is connected. A
    client that cannot read or write the node continues without it.
    """

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session, self._path = session, layout.clock_jump
        self._ahead_ms = 0  # as this client last recorded it

    def found_ms(self) -> int:
        """The lead of the ensemble's clock that other clients have recorded; 0 if none has."""
        try:
            found = self._session.get(self._path)
            return 0 if found is None else int(decode(found[0])["ahead_ms"])
        except (QueueError, ValueError, KeyError, TypeError, OverflowError) as error:
            log.warning("%s cannot be read: %s", self._path, error)
            return 0

    def keep(self, ahead_ms: int) -> None:
        """Record that the old time continues, and that the ensemble's clock is ahead of it by so much."""
        if abs(ahead_ms - self._ahead_ms) > _SAME_MS:
            log.warning(
                "the ensemble's clock is suddenly %.1f s %s, and the clock of this host does not confirm it: "
                "the old time continues until it does; check the time service of the ZooKeeper servers",
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
        """Record that the time is the ensemble's again."""
        if not self._ahead_ms:
            return
        log.warning("due times use the ensemble's clock again")
        self._ahead_ms = 0
        with contextlib.suppress(QueueError):  # removed already, or it ends with its creator's session
            commit(self._session, [Delete(self._path)])
