"""Removes requests for logs, and their folders, of state directories that no worker serves any more."""

from collections.abc import Iterator

from orchestrator.admission.hosts import announced
from orchestrator.leader.duty import Fence
from orchestrator.leader.stale_nodes import OrphanCandidate, OrphanCandidates
from orchestrator.model.paths import Nodes
from queues import Delete, QueueSet
from spark_runner.runners.base import SubmissionPlace

_PATIENCE_SECONDS = 600.0  # a worker may be started again


class StaleLogRequests:
    """Removes the folders of hosts that are gone; workers remove the requests that they have seen."""

    name = "stale-log-requests"

    def __init__(
        self, queue_set: QueueSet, nodes: Nodes, fence: Fence, *, patience: float = _PATIENCE_SECONDS
    ) -> None:
        self._set, self._nodes, self._fence = queue_set, nodes, fence
        self._candidates = OrphanCandidates(queue_set.session, patience)

    def step(self) -> float:
        """Look at all folders; raises NotLeading, and the errors of reads."""
        self._candidates.examine(self._found())
        return self._candidates.patience

    def _found(self) -> Iterator[OrphanCandidate]:
        fence, session = self._fence(), self._set.session
        served = {
            place.store
            for worker in announced(session, self._nodes).values()
            for document in _listed(worker.get("places"))
            if (place := SubmissionPlace.of(document)) is not None
        }
        for store in session.children(self._nodes.log_requests) or ():
            if store in served:
                continue
            folder = self._nodes.log_requests_of(store)
            requests = [self._nodes.log_request(store, name) for name in session.children(folder) or ()]
            for path in [*requests, *([] if requests else [folder])]:
                if (stat := session.exists(path)) is not None:
                    removal = (*fence, Delete(path))
                    yield OrphanCandidate(path, stat.created, removal, "no worker serves its state directory")


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
