"""Proof that a multi was carried out, also when what it was about has come and gone meanwhile.

A multi whose reply was lost is sent again. What a holder sends names the token, which no other put has: it is
refused where a later item has the id. A put, a repair and a request to stop name none. When a put was carried
out and a consumer was quick, its item has been handled and removed by then, and would be put a second time.
So each such multi also sets a node of its client from the version last seen: the second sending of the same
multi is refused there.
"""

import contextlib
import threading
import uuid
from dataclasses import dataclass

from queues.errors import Conflict, QueueError
from queues.names import Layout
from queues.operations import Create, Delete, Set
from queues.session import Session
from queues.transaction import commit


@dataclass(slots=True)
class Receipt:
    """A node that one multi at a time sets; `version` is the one it has now."""

    path: str
    version: int = 0

    @property
    def operation(self) -> Set:
        """What rides in the multi, as its first operation."""
        return Set(self.path, b"", self.version)


class Receipts:
    """The receipts of one client: as many as it had multis under way at once."""

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session = session
        self._layout = layout
        self._guard = threading.Lock()
        self._free: list[Receipt] = []

    def take(self) -> Receipt:
        """A receipt that no other multi under way uses."""
        with self._guard:
            if self._free:
                return self._free.pop()
        receipt = Receipt(self._layout.receipt(uuid.uuid4().hex))
        self._session.ensure_path(self._layout.receipts)
        try:
            commit(self._session, [Create(receipt.path)])
        except Conflict as conflict:
            if not conflict.ambiguous:  # our own lost reply, as nobody else has this name
                raise
        return receipt

    def give_back(self, receipt: Receipt, *, used: bool) -> None:
        """The multi was answered; `used`: it was carried out."""
        receipt.version += used
        with self._guard:
            self._free.append(receipt)

    def close(self) -> None:
        """Remove the nodes; what a crash leaves is removed by the scrubber."""
        with self._guard:
            free, self._free = self._free, []
        for receipt in free:
            with contextlib.suppress(QueueError):
                commit(self._session, [Delete(receipt.path)])
