"""Removes requests to drain workers that have ended."""

from collections.abc import Iterator

from orchestrator.leader.duty import Fence, FenceOperations
from orchestrator.leader.stale_nodes import OrphanCandidate, OrphanCandidates
from orchestrator.model.paths import Nodes
from queues import Create, Delete, QueueSet

_PATIENCE_SECONDS = 3600.0  # a worker that is cut off for less drains on when it is back


class StaleDrains:
    """Removes the requests that no worker will fulfil, because it was killed or is gone.

    Each node is removed in a multi with the fence of the leader, and only while no worker of its name is
    announced.
    """

    name = "stale-drains"

    def __init__(
        self, queue_set: QueueSet, nodes: Nodes, fence: Fence, *, patience: float = _PATIENCE_SECONDS
    ) -> None:
        self._session, self._nodes, self._fence = queue_set.session, nodes, fence
        self._candidates = OrphanCandidates(queue_set.session, patience)

    def step(self) -> float:
        """Look at all requests; raises NotLeading, and the errors of reads."""
        self._candidates.examine(self._found(self._fence()))
        return self._candidates.patience

    def _found(self, fence: FenceOperations) -> Iterator[OrphanCandidate]:
        names = self._session.children(self._nodes.drains) or ()
        requests = {name: self._nodes.drain(name) for name in names}
        workers = self._session.get_many([self._nodes.worker(name) for name in requests])
        nodes = self._session.get_many(list(requests.values()))
        for (name, path), worker, node in zip(requests.items(), workers, nodes, strict=True):
            if worker is None and node is not None:
                announcement = self._nodes.worker(name)
                absent = (Create(announcement), Delete(announcement))  # refused when the worker is back
                removal = (*fence, *absent, Delete(path, node[1].version))
                yield OrphanCandidate(path, node[1].created, removal, "its worker is not announced any more")
