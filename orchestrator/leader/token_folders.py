"""The folders of one queue, one for each pool, listed again only when something came or went."""

from collections.abc import Iterator, Mapping

from orchestrator.states import Queue
from queues.names import is_token, order_of
from queues.queue import QueueSet
from queues.session import Stat


class TokenFolders:
    """What stands in a queue, low lanes too. Used by one thread."""

    def __init__(self, queue_set: QueueSet, queue: Queue) -> None:
        self._set, self._queue = queue_set, queue
        self._listed: dict[str, int] = {}  # pool -> children_zxid of the listing that was handed out

    def stats(self) -> Mapping[str, Stat]:
        """The stat of each pool's folder, in two requests."""
        pools, layout = self._set.pools.names(low=True), self._set.layout
        found = self._set.session.get_many([layout.queue(self._queue, pool) for pool in pools])
        return {pool: node[1] for pool, node in zip(pools, found, strict=True) if node is not None}

    def names(self, pool: str) -> list[str]:
        """The tokens of a pool, in the order in which they are due."""
        return self._list(pool)[0]

    def changes(self) -> Iterator[tuple[str, list[str]]]:
        """Each pool that has changed since it was handed out, with all its tokens; none for one that is gone.

        What fails while the caller works on one is handed out again the next time.
        """
        stats = self.stats()
        for pool in self._listed.keys() - stats.keys():
            yield pool, []
            del self._listed[pool]
        for pool, stat in stats.items():
            if self._listed.get(pool) != stat.children_zxid:
                names, zxid = self._list(pool)
                yield pool, names
                self._listed[pool] = zxid

    def _list(self, pool: str) -> tuple[list[str], int]:
        listed = self._set.session.listing(self._set.layout.queue(self._queue, pool))
        if listed is None:
            return [], -1
        return sorted(filter(is_token, listed[0]), key=order_of), listed[1].children_zxid
