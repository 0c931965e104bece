"""Receipts prove that a multi was committed, even if its effects have been removed since.

A multi whose reply was lost is sent again. A holder's multi names the token, which is unique to one put: it
is refused if a later item has the id. A put, a repair and a request to stop name no token. If a put was
committed and a consumer was quick, its item may have been removed already, and would be put a second time.
Therefore each such multi also sets a node of its client at the version last seen: a second send of the same
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
    """A node that one multi at a time sets; `version` is its current version."""

    path: str
    version: int = 0

    @property
    def operation(self) -> Set:
        """The first operation of the multi."""
        return Set(self.path, b"", self.version)


class Receipts:
    """The receipts of one client: as many as its peak number of multis in flight."""

    def __init__(self, session: Session, layout: Layout) -> None:
        self._session = session
        self._layout = layout
        self._guard = threading.Lock()
        self._free: list[Receipt] = []

    def take(self) -> Receipt:
        """A receipt that no other multi in flight uses."""
        with self._guard:
            if self._free:
                return self._free.pop()
        receipt = Receipt(self._layout.receipt(uuid.uuid4().hex))
        self._session.ensure_path(self._layout.receipts)
        try:
            commit(self._session, [Create(receipt.path)])
        except Conflict as conflict:
            if not conflict.ambiguous:  # an echo of our own lost reply, as the name is unique
                raise
        return receipt

    def give_back(self, receipt: Receipt, *, used: bool) -> None:
        """Return a receipt after the reply; `used`: the multi was committed."""
        receipt.version += used
        with self._guard:
            self._free.append(receipt)

    def close(self) -> None:
        """Remove the nodes. The scrubber removes those that a crash leaves."""
        with self._guard:
            free, self._free = self._free, []
        for receipt in free:
            with contextlib.suppress(QueueError):
                commit(self._session, [Delete(receipt.path)])
