"""Checked multi: sizes guarded, every result examined, typed errors raised."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from queues.errors import Conflict, OutcomeUnknown, TooLarge
from queues.operations import Create, Operation, Set
from queues.session import ReplyLost, Session, refusal

# The server drops the connection of a request above 1,048,575 bytes (jute.maxbuffer) instead of refusing it.
MAX_MULTI_BYTES = 768 * 1024
_OPERATION_OVERHEAD_BYTES = 64
# The break is noticed here before the session reports it: without a pause the next send would fail too.
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
    return insist(session, operations, deadline, sent=False, before_again=before_again)


def insist(
    session: Session,
    operations: Transaction,
    deadline: float,
    *,
    sent: bool,
    before_again: Callable[[], object] = lambda: None,
) -> list[Any]:
    """Send until there is an answer. `sent`: it was sent before, and its reply was lost."""
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
    # No real error, and yet not every operation was done: kazoo would not report it.
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
