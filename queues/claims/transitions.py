"""Commits transitions of different items together, in few multis."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from queues.claims.claim import Transition
from queues.model.errors import ClaimLost, QueueError
from queues.model.operations import Operation
from queues.store.batch import commit_many


def run_transitions(transitions: Iterable[Transition]) -> list[tuple[Transition, QueueError | None]]:
    """Commit transitions of different items, together where possible; returns each with its error, or None.

    The iterable is consumed while earlier transitions are in flight. Those of one session must be adjacent.
    """
    outcomes: list[tuple[Transition, QueueError | None]] = []

    def sent(group: Iterable[Transition], held: list[Transition]) -> Iterator[Sequence[Operation]]:
        for transition in group:
            if transition.claim.held:
                held.append(transition)
                yield transition.operations
            else:
                outcomes.append((transition, ClaimLost(transition.claim.id, "it was released before")))

    for session, group in groupby(transitions, lambda transition: transition.claim.hold.session):
        held: list[Transition] = []
        started = time.monotonic()
        refusals = commit_many(session, sent(group, held))
        seconds = time.monotonic() - started
        for transition, refused in zip(held, refusals, strict=True):
            try:
                if transition.restores_folder(refused):
                    transition.run()
                    outcomes.append((transition, None))
                else:
                    outcomes.append((transition, transition.settle(refused, seconds)))
            except QueueError as error:  # reading the actual outcome failed
                outcomes.append((transition, error))
    return outcomes
