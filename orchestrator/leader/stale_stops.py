"""Requests to stop a job that has ended, is gone, or was enqueued anew."""

from collections.abc import Iterator

from orchestrator.leader.duty import Fence
from orchestrator.leader.proofs import JobProofs
from orchestrator.leader.suspects import Suspect, Suspects
from orchestrator.models.job import JobView
from queues.errors import InvalidName
from queues.names import check_id
from queues.operations import Delete, Operation
from queues.queue import QueueSet
from queues.record import Record

_PATIENCE_SECONDS = 60.0


class StaleStops:
    """Removes what would stop a later job of the same id, or lie there for ever.

    Each goes in a multi with the fence of the leader and the proof that its job is as it was seen: nobody but
    the holder of that job and another leader removes such a node, so it is the very one that was looked at.
    """

    name = "stale-stops"

    def __init__(self, queue_set: QueueSet, fence: Fence, *, patience: float = _PATIENCE_SECONDS) -> None:
        self._set, self._fence = queue_set, fence
        self._proofs = JobProofs(queue_set)
        self._suspects = Suspects(queue_set.session, patience)

    def step(self) -> float:
        """Look at all of them; raises NotLeading, and what reads raise."""
        self._suspects.examine(self.found(self._fence()))
        return self._suspects.patience

    def found(self, fence: tuple[Operation, ...]) -> Iterator[Suspect]:
        """What seems to be left over; without a fence it may be looked at only, and nothing is written."""
        layout, session = self._set.layout, self._set.session
        folders = [layout.stops(pool) for pool in self._set.pools.names(low=True)]
        full = [
            folder
            for folder, node in zip(folders, session.get_many(folders), strict=True)
            if node is not None and node[1].children
        ]
        stops = {f"{folder}/{name}": name for folder in full for name in session.children(folder) or ()}
        stops = {path: name for path, name in stops.items() if _is_id(name)}
        nodes = session.get_many(list(stops))  # before the records: a job that ends in between is seen so
        found = self._proofs.read(stops.values(), prepare=bool(fence))
        for (path, job_id), node in zip(stops.items(), nodes, strict=True):
            if node is None or (known := found.get(job_id)) is None:
                continue
            record, proof = known
            reason = _reason(record, node[0])
            if reason:
                identity = (node[1].created, node[1].version, node[0])
                yield Suspect(path, identity, (*fence, *proof, Delete(path, node[1].version)), reason)


def _reason(record: Record | None, data: bytes) -> str:
    if record is None:
        return "its job is gone"
    if record.run_key.encode() not in data:
        return "it is meant for an earlier job of this id"
    try:
        return "its job has ended" if JobView.of(record).is_final else ""
    except ValueError:  # the payload is no job's: its handler tells
        return ""


def _is_id(name: str) -> bool:
    try:
        return bool(check_id(name))
    except InvalidName:
        return False
