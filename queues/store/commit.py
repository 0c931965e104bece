"""Checked multis: sizes guarded, every result examined, and receipts that prove a multi was committed.

A multi whose reply was lost is sent again. A holder's multi names the token, which is unique to one put: it
is refused if a later item has the id. A put, a repair and a request to stop name no token. If a put was
committed and a consumer was quick, its item may have been removed already, and would be put a second time.
Therefore each such multi also sets a node of its client at the version last seen: a second send of the same
multi is refused there.
"""

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from queues.model.errors import Conflict, OutcomeUnknown, QueueError, TooLarge
from queues.model.names import Layout
from queues.model.operations import Create, Delete, Operation, Set
from queues.session import ReplyLost, Session, refusal

# The server drops the connection of a request above 1,048,575 bytes (jute.maxbuffer) instead of refusing it.
MAX_MULTI_BYTES = 768 * 1024
_OPERATION_OVERHEAD_BYTES = 64
# A send fails before the session reports the broken connection: without a pause the next one would fail too.
_RESEND_PAUSE_SECONDS = 0.05
_WITH_DATA = (Create, Set)  # a tuple: it is tested for each operation, and a union is five times slower

Transaction = Sequence[Operation]
"""Operations that are committed together or not at all."""


def commit(
    session: Session, operations: Transaction, *, before_again: Callable[[], object] = lambda: None
) -> list[Any]:
    """Commit all operations or none; returns ZooKeeper's result for each.

    If the connection breaks, the outcome is unknown and the identical multi is sent again, so every multi
    must contain an operation that can succeed only once. `before_again` is called before each resend and may
    raise to prevent it. Raises Conflict if it is refused, OutcomeUnknown if no answer came within the
    session's call timeout, TooLarge before anything is sent.
    """
    check_size(size(operations))
    deadline = time.monotonic() + session.settings.call_timeout
    return commit_until_deadline(session, operations, deadline, sent=False, before_again=before_again)


def commit_until_deadline(
    session: Session,
    operations: Transaction,
    deadline: float,
    *,
    sent: bool,
    before_again: Callable[[], object] = lambda: None,
) -> list[Any]:
    """Send a multi until there is an answer. `sent`: it was sent before, and its reply was lost."""
    while (left := deadline - time.monotonic()) > 0:
        if not session.wait_connected(left):
            break
        if sent:
            before_again()
        try:
            results = session.send(operations, timeout=max(0.1, deadline - time.monotonic()))
        except ReplyLost:
            sent = True
            time.sleep(_RESEND_PAUSE_SECONDS)
            continue
        conflict = examine(operations, results, sent=sent)
        if conflict is not None:
            raise conflict
        return results
    message = (
        f"ZooKeeper at {session.settings.hosts} did not answer within {session.settings.call_timeout:.0f} s; "
        + ("the change may or may not have been made" if sent else "nothing was changed")
    )
    raise OutcomeUnknown(message)


def examine(operations: Transaction, results: Sequence[Any], *, sent: bool) -> Conflict | None:
    """The conflict that refused a multi, None if it was committed; raises OutcomeUnknown if neither shows."""
    if len(results) == len(operations) and not any(isinstance(result, Exception) for result in results):
        return None
    for index, result in enumerate(results):
        reason = refusal(result)
        if reason is not None:
            return Conflict(index, operations[index], reason, ambiguous=sent)
    # There is no error, but not every operation was done: kazoo would not report it.
    message = f"ZooKeeper rolled a multi back without a reason: {results!r}"
    raise OutcomeUnknown(message)


def size(operations: Transaction) -> int:
    """An upper bound of the bytes that these operations take on the wire."""
    total = 0
    for operation in operations:
        total += len(operation.path) + _OPERATION_OVERHEAD_BYTES
        if isinstance(operation, _WITH_DATA):
            total += len(operation.data)
    return total


def check_size(total: int) -> None:
    """Raise TooLarge if `total` bytes exceed the limit of one multi."""
    if total > MAX_MULTI_BYTES:
        raise TooLarge("the request to ZooKeeper", total, MAX_MULTI_BYTES)


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
            if not conflict.ambiguous:  # the lost reply of an earlier send, as the name is unique
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
