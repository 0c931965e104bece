"""One claim on its way: its multi, and what it means when an operation of that is refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from queues.claim import Held
from queues.errors import Refusal
from queues.names import Layout, Token
from queues.operations import Check, Create, Delete, Operation, Set
from queues.record import Record


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that seems to be free. `stopped`: claim it only while there is a request to stop it."""

    queue: str
    pool: str
    token: Token
    stopped: bool = False


@dataclass(slots=True)
class ClaimAttempt:
    """The record as it will be, the version that is replaced, and how the item will be held."""

    record: Record
    version: int
    held: Held
    step: Sequence[Operation]
    refusals: Sequence[Refusal]  # by the operation that is refused


def claim_attempt(
    layout: Layout,
    candidate: Candidate,
    record: Record,
    version: int,
    held: Held,
    *,
    data: bytes,
    note: bytes,
    limits: Sequence[Check],
    seize: bool,
) -> ClaimAttempt:
    """The multi of a claim; `data` becomes the record, `note` the lock, `limits` must hold still."""
    pool, token = candidate.pool, candidate.token
    lock = layout.lock(pool, token.id)
    # A worker with a stale listing would lock an item that has moved on.
    step: list[Operation] = [Check(layout.token(candidate.queue, pool, token)), *limits]
    refusals = [Refusal.MOVED_ON, *(Refusal.POOL_CHANGED for _ in limits)]
    if seize:
        step.append(Delete(lock))
        refusals.append(Refusal.CHANGED)
    step += (Create(lock, note, ephemeral=True), Set(layout.record(token.id), data, version))
    refusals += (Refusal.HELD, Refusal.CHANGED)
    if held.place is not None:
        step.append(Create(layout.hold(pool, held.place), token.id.encode(), ephemeral=True))
        refusals.append(Refusal.FULL)
    if candidate.stopped:
        step.append(Check(layout.stop(pool, token.id)))
        refusals.append(Refusal.NO_STOP)
    return ClaimAttempt(record, version, held, step, refusals)
