"""Removes slot nodes that no running job uses."""

from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.admission.slots import slot_owner
from orchestrator.leader.duty import Fence, FenceOperations
from orchestrator.leader.stale_nodes import JobPreconditions, OrphanCandidate, OrphanCandidates
from orchestrator.model.job import JobState
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from queues import LOW_LANE_SUFFIX, Delete, QueueSet, Record, Stat

_PATIENCE_SECONDS = 60.0
_RUNNING = {Status.RUNNING, Status.RUNNING_WARN, Status.KILL}
_NOT_RUNNING = {Queue.FINISH, Queue.DEAD}


class _SlotNode(NamedTuple):
    path: str
    owner: str  # the pool, or the job name of the definition
    number: str
    of_pool: bool
    job_id: str
    data: bytes
    stat: Stat


class StaleSlots:
    """Frees slots of capped pools and of limited names that damage or a bug has left behind.

    Each node is removed in a multi with the fence of the leader and the preconditions that its job is as it
    was read. Only the holder of that job and another leader remove such a node, so it is the one that was
    read. Empty folders of names are removed as well.
    """

    name = "stale-slots"

    def __init__(
        self, queue_set: QueueSet, nodes: Nodes, fence: Fence, *, patience: float = _PATIENCE_SECONDS
    ) -> None:
        self._set, self._nodes, self._fence = queue_set, nodes, fence
        self._session = queue_set.session
        self._preconditions = JobPreconditions(queue_set)
        self._candidates = OrphanCandidates(queue_set.session, patience)

    def step(self) -> float:
        """Look at all slots; raises NotLeading, and the errors of reads."""
        self._candidates.examine(self.found(self._fence()))
        return self._candidates.patience

    def found(self, fence: FenceOperations) -> Iterator[OrphanCandidate]:
        """The slots that seem to be orphaned.

        Without a fence the candidates are for inspection only, and nothing is written.
        """
        pools, names = self._folders(self._nodes.capped), self._folders(self._nodes.named)
        for path, stat in names.items():
            if not stat.children:
                identity = (stat.created, stat.children_zxid)
                yield OrphanCandidate(
                    path, identity, (*fence, Delete(path, stat.version)), "no job of this name runs"
                )
        slots = [*self._slots(pools, of_pool=True), *self._slots(names, of_pool=False)]
        found = self._preconditions.read((slot.job_id for slot in slots), prepare=bool(fence))
        for slot in slots:
            if (known := found.get(slot.job_id)) is None:
                continue
            reason = _reason(known.record, slot)
            if reason:
                node = (slot.stat.created, slot.stat.version, slot.data)
                removal = (*fence, *known.preconditions, Delete(slot.path, slot.stat.version))
                yield OrphanCandidate(slot.path, node, removal, reason)

    def _folders(self, path: str) -> dict[str, Stat]:
        paths = [f"{path}/{name}" for name in self._session.children(path) or ()]
        found = zip(paths, self._session.get_many(paths), strict=True)
        return {path: node[1] for path, node in found if node is not None}

    def _slots(self, folders: dict[str, Stat], *, of_pool: bool) -> Iterator[_SlotNode]:
        paths = [
            f"{folder}/{name}"
            for folder, stat in folders.items()
            if stat.children
            for name in self._session.children(folder) or ()
        ]
        for path, node in zip(paths, self._session.get_many(paths), strict=True):
            job_id = "" if node is None else slot_owner(node[0])
            if node is not None and job_id:  # a node without a job id is foreign
                *_, owner, number = path.split("/")
                yield _SlotNode(path, owner, number, of_pool, job_id, *node)


def _reason(record: Record | None, slot: _SlotNode) -> str:
    """Why this slot is orphaned; empty when its job runs in it, or may."""
    if record is None:
        return f"its job {slot.job_id} is gone"
    if record.run_key.encode() not in slot.data:
        return f"an earlier job {slot.job_id} had it"
    if record.queue in _NOT_RUNNING:
        return f"its job {slot.job_id} has ended"
    try:
        state = JobState.from_payload(record.payload)
    except ValueError:  # the payload is no job's: its handler reports that
        return ""
    if state.status not in _RUNNING:
        return f"its job {slot.job_id} is {state.status}"
    owner, number = (
        (record.pool.removesuffix(LOW_LANE_SUFFIX), state.slot)
        if slot.of_pool
        else (state.name, state.name_slot)
    )
    return "" if (owner, str(number)) == (slot.owner, slot.number) else f"{slot.job_id} runs in another slot"
