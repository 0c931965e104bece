"""Dead letters: items that cannot be processed are moved to `dead` with the reason, and replayed."""

from queues.claim import Claim
from queues.claim_attempt import Candidate
from queues.claimer import Claimer
from queues.documents import decode, encode, timestamp
from queues.errors import Conflict, QueueError
from queues.events import Event, EventKind
from queues.names import Token
from queues.operations import Check, Create, Delete, Operation
from queues.record import NOTE_BYTES, Record
from queues.root import Root
from queues.transaction import commit


def move_to_dead(root: Root, queue: str, pool: str, token: Token, error: QueueError) -> bool:
    """Move the token of an item that cannot be read to `dead`, its bytes unchanged, with the reason.

    Returns False while the item is held, if it has moved on, or if the record has changed.
    """
    layout, session = root.layout, root.session
    found = session.get(layout.record(token.id))
    if found is not None and _can_be_claimed(root, token.id, found[0]):
        return False  # repaired since
    lock, dead = layout.lock(pool, token.id), layout.token(root.dead, pool, token)
    reason = encode({"reason": str(error), "queue": queue, "since": timestamp()})
    operations: list[Operation] = [
        Create(lock, ephemeral=True),  # made and removed in one multi: succeeds only if the item is not held
        Delete(layout.token(queue, pool, token)),
        Create(dead, reason),
        Delete(lock),
    ]
    if found is not None:
        operations.append(Check(layout.record(token.id), found[1].version))
    try:
        commit(session, operations)
    except Conflict as conflict:
        return conflict.ambiguous and session.exists(dead) is not None
    root.listeners.notify(
        Event(
            EventKind.DEAD,
            token.id,
            queue,
            pool,
            to_queue=root.dead,
            to_pool=pool,
            due=token.due,
            released=True,
            detail=str(error),
        )
    )
    return True


def replay(root: Root, claimer: Claimer, pool: str, token: Token, queue: str | None) -> str:
    """Move one item from dead back to its original queue, or to `queue`; returns that queue.

    Its counts of failures and claims restart at 0. Raises CorruptRecord or ItemNotFound while it cannot be
    read, NotClaimed while it is held.
    """
    note = root.session.get(root.layout.token(root.dead, pool, token))
    (claim,) = claimer.claim([Candidate(root.dead, pool, token)], capped=False)
    if not isinstance(claim, Claim):
        raise claim
    target = queue or _origin(root, claim, b"" if note is None else note[0])
    try:
        claim.commit(queue=target, due=root.clock.now_ms(), release=True)
    finally:
        claim.give_up()
    return target


def _can_be_claimed(root: Root, item_id: str, data: bytes) -> bool:
    try:
        record = Record.decode(item_id, data)
        record.evolve(claims=record.claims + 1).encode(root.max_record_bytes + NOTE_BYTES)
    except QueueError:
        return False
    return True


def _origin(root: Root, claim: Claim, note: bytes) -> str:
    error = claim.record.error
    if error is None and note:
        try:
            error = decode(note)
        except ValueError:
            error = None
    origin = "" if error is None else str(error.get("queue", ""))
    return origin if origin in root.queues and origin != root.dead else root.queues[0]
