"""Bulk claim: claims jobs as an operator does, in paused pools too, and never from another holder."""

from collections.abc import Iterable, Sequence

from loguru import logger

from queues.claim import Claim, Transition
from queues.claim_attempt import Candidate
from queues.errors import CorruptRecord, ItemNotFound, NotClaimed
from queues.queue import QueueSet
from queues.step import run_transitions


def claim_many(queue_set: QueueSet, candidates: Sequence[Candidate]) -> list[Claim]:
    """Claim the candidates that are still in place and unheld; one that cannot be read goes to dead."""
    if not candidates:
        return []
    claims = []
    for candidate, outcome in zip(candidates, queue_set.take_many(candidates), strict=True):
        match outcome:
            case Claim():
                claims.append(outcome)
            case NotClaimed():
                pass  # another worker holds it
            case CorruptRecord() | ItemNotFound():
                queue_set.move_to_dead(candidate.queue, candidate.pool, candidate.token, outcome)
            case _:
                logger.warning("{} was not claimed: {}", candidate.token.id, outcome)
    return claims


def commit_and_release(steps: Iterable[Transition]) -> list[Claim]:
    """Commit these transitions together; returns the claims of those that were committed, and keeps none."""
    done = []
    for step, error in run_transitions(steps):
        if error is None:
            done.append(step.claim)
        else:
            logger.warning("{} is released unchanged: {}", step.claim.id, error)
            step.claim.give_up()
    return done
