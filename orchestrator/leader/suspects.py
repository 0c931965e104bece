"""Orphan candidates: nodes that are removed only when two looks, some time apart, found them unchanged."""

import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from loguru import logger

from queues.bundle import commit_many
from queues.session import Session
from queues.transaction import Transaction


@dataclass(frozen=True, slots=True)
class OrphanCandidate:
    """A node that seems to be an orphan: its identity when it was read, and the multi that removes it."""

    path: str
    identity: Hashable
    removal: Transaction
    reason: str


class OrphanCandidates:
    """Remembers when each candidate was first seen. Used by one thread.

    `patience`: seconds for which a node has to stay unchanged, because a node of an operation in progress
    looks like an orphan too.
    """

    def __init__(self, session: Session, patience: float) -> None:
        self._session, self.patience = session, patience
        self._since: dict[tuple[str, Hashable], float] = {}

    def examine(self, found: Iterable[OrphanCandidate]) -> None:
        """Remove those of `found`, the complete list of this look, that were first seen long enough ago."""
        candidates, ripe = list(found), []
        now, before, self._since = time.monotonic(), self._since, {}
        for candidate in candidates:
            key = (candidate.path, candidate.identity)
            since = self._since[key] = before.get(key, now)
            if now - since >= self.patience:
                ripe.append(candidate)
        remove_orphans(self._session, ripe)


def remove_orphans(session: Session, candidates: Sequence[OrphanCandidate]) -> None:
    """Remove these nodes, each in its own multi; one that has changed since it was read stays."""
    refusals = commit_many(session, [candidate.removal for candidate in candidates])
    for candidate, refused in zip(candidates, refusals, strict=True):
        if refused is None:
            logger.info("{} is removed: {}", candidate.path, candidate.reason)
        else:  # it has changed since, or another worker leads: the next look decides
            logger.info("{} is not removed: {}", candidate.path, refused)
