"""Taking jobs as an operator does: whatever the pauses of their pools, and never from who holds them."""

from collections.abc import Iterable, Sequence

from loguru import logger

from queues.claim import Claim, Transition
from queues.claim_attempt import Candidate
from queues.errors import CorruptRecord, ItemNotFound, NotClaimed
from queues.queue import QueueSet
from queues.step import run_transitions


def take(queue_set: QueueSet, candidates: Sequence[Candidate]) -> list[Claim]:
    """Claim those that nobody holds and that still stand there; what cannot be read goes to dead."""
    if not candidates:
        return []
    claims = []
    for candidate, outcome in zip(candidates, queue_set.take_many(candidates), strict=True):
        match outcome:
            case Claim():
                claims.append(outcome)
            case NotClaimed():
                pass  # somebody is at work on it
            case CorruptRecord() | ItemNotFound():
                queue_set.move_to_dead(candidate.queue, candidate.pool, candidate.token, outcome)
            case _:
                logger.warning("{} was not taken: {}", candidate.token.id, outcome)
    return claims


def settle(steps: Iterable[Transition]) -> list[Transition]:
    """Do these steps together and return those that were done; nothing stays in hand."""
    done = []
    for step, error in run_transitions(steps):
        if error is None:
            done.append(step)
        else:
            logger.warning("{} is let go: {}", step.claim.id, error)
            step.claim.give_up()
    return done
