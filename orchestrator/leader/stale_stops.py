"""Removes requests to stop a job that has ended, is gone, or was enqueued anew."""

from collections.abc import Iterator

from orchestrator.leader.duty import Fence, FenceOperations
from orchestrator.leader.stale_nodes import JobPreconditions, OrphanCandidate, OrphanCandidates
from orchestrator.model.job_view import JobView
from queues import CorruptRecord, Delete, InvalidName, QueueSet, Record, check_id

_PATIENCE_SECONDS = 60.0


class StaleStops:
    """Removes requests that would stop a later job of the same id, or stay permanently.

    Each node is removed in a multi with the fence of the leader and the preconditions that its job is as it
    was read. Only the holder of that job and another leader remove such a node, so it is the one that was
    read.
    """

    name = "stale-stops"

    def __init__(self, queue_set: QueueSet, fence: Fence, *, patience: float = _PATIENCE_SECONDS) -> None:
        self._set, self._fence = queue_set, fence
        self._preconditions = JobPreconditions(queue_set)
        self._candidates = OrphanCandidates(queue_set.session, patience)

    def step(self) -> float:
        """Look at all requests; raises NotLeading, and the errors of reads."""
        self._candidates.examine(self.found(self._fence()))
        return self._candidates.patience

    def found(self, fence: FenceOperations) -> Iterator[OrphanCandidate]:
        """The requests that seem to be stale.

        Without a fence the candidates are for inspection only, and nothing is written.
        """
        layout, session = self._set.layout, self._set.session
        folders = [layout.stops(pool) for pool in self._set.pools.names(low=True)]
        full = [
            folder
            for folder, node in zip(folders, session.get_many(folders), strict=True)
            if node is not None and node[1].children
        ]
        stops = {f"{folder}/{name}": name for folder in full for name in session.children(folder) or ()}
        stops = {path: name for path, name in stops.items() if _is_id(name)}
        nodes = session.get_many(
            list(stops)
        )  # before the records, so that a job that ends in between is seen as ended
        found = self._preconditions.read(stops.values(), prepare=bool(fence))
        for (path, job_id), node in zip(stops.items(), nodes, strict=True):
            if node is None or (known := found.get(job_id)) is None:
                continue
            reason = _reason(known.record, node[0])
            if reason:
                identity = (node[1].created, node[1].version, node[0])
                removal = (*fence, *known.preconditions, Delete(path, node[1].version))
                yield OrphanCandidate(path, identity, removal, reason)


def _reason(record: Record | None, data: bytes) -> str:
    if record is None:
        return "its job is gone"
    if record.run_key.encode() not in data:
        return "it is for an earlier job of this id"
    try:
        return "its job has ended" if JobView.of(record).is_final else ""
    except CorruptRecord:  # the payload is no job's: its handler reports that
        return ""


def _is_id(name: str) -> bool:
    try:
        return bool(check_id(name))
    except InvalidName:
        return False
