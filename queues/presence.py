"""A consumer's place among those who take items of the same pools."""

import logging
import uuid
from collections.abc import Callable, Sequence

from queues.bundle import commit_many
from queues.documents import encode, timestamp
from queues.errors import Conflict
from queues.operations import Create, Delete
from queues.root import Root
from queues.session import SessionState

log = logging.getLogger(__name__)


class Presence:
    """An ephemeral per pool, so that the others leave this consumer its share, and an operator sees it."""

    def __init__(self, root: Root, queues: Sequence[str], pools: Callable[[], Sequence[str]]) -> None:
        self.name = f"{root.owner or 'consumer'}-{uuid.uuid4().hex[:6]}"
        self._root = root
        self._queues = list(queues)
        self._pools = pools
        self._announced: tuple[int, frozenset[str]] | None = None  # in which session, for which pools

    def announce(self) -> None:
        """Be seen in each pool, again after a lost session."""
        root, pools = self._root, frozenset(self._pools())
        now = (root.session.generation, pools)
        if now == self._announced:
            return
        document = encode({"worker": root.owner, "queues": self._queues, "since": timestamp()})
        nodes = [[Create(self._path(pool), document, ephemeral=True)] for pool in sorted(pools)]
        for refused in commit_many(root.session, nodes):
            if refused is not None and not (isinstance(refused, Conflict) and refused.reason == "NodeExists"):
                raise refused
        self._announced = now

    def withdraw(self) -> None:
        """Leave the rest to the others at once; without a connection the nodes go with the session."""
        if self._announced is not None and self._root.session.state is SessionState.CONNECTED:
            pools = sorted(self._announced[1])
            refusals = commit_many(self._root.session, [[Delete(self._path(pool))] for pool in pools])
            log.debug("left the pools %s: %s", pools, refusals)

    def _path(self, pool: str) -> str:
        return f"{self._root.layout.consumers(pool)}/{self.name}"
