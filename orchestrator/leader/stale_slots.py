"""Places of running jobs that no running job has."""

from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.leader.duty import Fence
from orchestrator.leader.proofs import JobProofs
from orchestrator.leader.suspects import Suspect, Suspects
from orchestrator.models.job import JobState
from orchestrator.nodes import Nodes
from orchestrator.states import Queue, Status
from queues.documents import decode
from queues.errors import InvalidName
from queues.names import LOW, check_id
from queues.operations import Delete, Operation
from queues.queue import QueueSet
from queues.record import Record
from queues.session import Stat

_PATIENCE_SECONDS = 60.0
_RUNNING = {Status.RUNNING, Status.RUNNING_WARN, Status.KILL}
_NOT_RUNNING = {Queue.FINISH, Queue.DEAD}


class _Place(NamedTuple):
    path: str
    owner: str  # the pool, or the name of the definition
    number: str
    of_pool: bool
    job_id: str
    data: bytes
    stat: Stat


class StaleSlots:
    """Gives back places of capped pools and of limited names that damage or a bug has left.

    Each goes in a multi with the fence of the leader and the proof that its job is as it was seen: nobody but
    the holder of that job and another leader removes such a node, so it is the very one that was looked at.
    Folders of names that nothing runs under go as well.
    """

    name = "stale-slots"

    def __init__(
        self, queue_set: QueueSet, nodes: Nodes, fence: Fence, *, patience: float = _PATIENCE_SECONDS
    ) -> None:
        self._set, self._nodes, self._fence = queue_set, nodes, fence
        self._session = queue_set.session
        self._proofs = JobProofs(queue_set)
        self._suspects = Suspects(queue_set.session, patience)

    def step(self) -> float:
        """Look at all of them; raises NotLeading, and what reads raise."""
        self._suspects.examine(self.found(self._fence()))
        return self._suspects.patience

    def found(self, fence: tuple[Operation, ...]) -> Iterator[Suspect]:
        """What seems to be left over; without a fence it may be looked at only, and nothing is written."""
        pools, names = self._folders(self._nodes.capped), self._folders(self._nodes.named)
        for path, stat in names.items():
            if not stat.children:
                identity = (stat.created, stat.children_zxid)
                yield Suspect(path, identity, (*fence, Delete(path, stat.version)), "nothing runs under it")
        places = [*self._places(pools, of_pool=True), *self._places(names, of_pool=False)]
        found = self._proofs.read((place.job_id for place in places), prepare=bool(fence))
        for place in places:
            if (known := found.get(place.job_id)) is None:
                continue
            record, proof = known
            reason = _reason(record, place)
            if reason:
                node = (place.stat.created, place.stat.version, place.data)
                removal = (*fence, *proof, Delete(place.path, place.stat.version))
                yield Suspect(place.path, node, removal, reason)

    def _folders(self, path: str) -> dict[str, Stat]:
        paths = [f"{path}/{name}" for name in self._session.children(path) or ()]
        found = zip(paths, self._session.get_many(paths), strict=True)
        return {path: node[1] for path, node in found if node is not None}

    def _places(self, folders: dict[str, Stat], *, of_pool: bool) -> Iterator[_Place]:
        paths = [
            f"{folder}/{name}"
            for folder, stat in folders.items()
            if stat.children
            for name in self._session.children(folder) or ()
        ]
        for path, node in zip(paths, self._session.get_many(paths), strict=True):
            job_id = "" if node is None else _job_id(node[0])
            if node is not None and job_id:  # what says nothing of a job is not ours
                *_, owner, number = path.split("/")
                yield _Place(path, owner, number, of_pool, job_id, *node)


def _job_id(data: bytes) -> str:
    try:
        return check_id(str(decode(data)["id"]))
    except (ValueError, KeyError, InvalidName):
        return ""


def _reason(record: Record | None, place: _Place) -> str:
    """Why nobody has this place; empty when its job runs in it, or may."""
    if record is None:
        return f"its job {place.job_id} is gone"
    if record.run_key.encode() not in place.data:
        return f"an earlier job {place.job_id} had it"
    if record.queue in _NOT_RUNNING:
        return f"its job {place.job_id} has ended"
    try:
        state = JobState.model_validate(record.payload)
    except ValueError:  # the payload is no job's: its handler tells
        return ""
    if state.status not in _RUNNING:
        return f"its job {place.job_id} is {state.status}"
    owner, number = (
        (record.pool.removesuffix(LOW), state.slot) if place.of_pool else (state.name, state.name_slot)
    )
    return "" if (owner, str(number)) == (place.owner, place.number) else f"{place.job_id} runs in another"
