"""Left-over nodes: removed only when they were found twice, some time apart, and nothing has changed."""

import time
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from loguru import logger

from queues.bundle import commit_many
from queues.session import Session
from queues.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Suspect:
    """A node that seems to be left over: what it was when it was seen, and the multi that removes it."""

    path: str
    identity: Hashable
    removal: Transaction
    reason: str


class Suspects:
    """Remembers who was seen when. Used by one thread.

    `patience`: seconds that a node has to stand unchanged, as what is on its way looks like a left-over too.
    """

    def __init__(self, session: Session, patience: float) -> None:
        self._session, self.patience = session, patience
        self._since: dict[tuple[str, Hashable], float] = {}

    def examine(self, found: Iterable[Suspect]) -> None:
        """Remove those of `found`, which are all that there are now, that were seen long enough ago."""
        suspects, ripe = list(found), []
        now, before, self._since = time.monotonic(), self._since, {}
        for suspect in suspects:
            key = (suspect.path, suspect.identity)
            since = self._since[key] = before.get(key, now)
            if now - since >= self.patience:
                ripe.append(suspect)
        refusals = commit_many(self._session, [suspect.removal for suspect in ripe])
        for suspect, refused in zip(ripe, refusals, strict=True):
            if refused is None:
                logger.info("{} is removed: {}", suspect.path, suspect.reason)
            else:  # it has changed meanwhile, or another worker leads: the next look tells
                logger.info("{} is not removed: {}", suspect.path, refused)
