"""Changing one job as its holder would: what all operators' acts share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from orchestrator.admission.slots import Slots
from orchestrator.errors import JobHeld, StateConflict
from orchestrator.models.job import JobState
from orchestrator.nodes import Nodes
from orchestrator.operating.belongings import Belongings
from orchestrator.operating.stops import Stops
from orchestrator.records import state_of
from orchestrator.states import Queue
from queues.claim import Claim
from queues.errors import Conflict, CorruptRecord, ItemHeld, NotClaimed
from queues.operations import Delete, Operation
from queues.queue import QueueSet

_MAX_TRIES = 10  # a node that rides along comes or goes in the moment of the change: somebody was faster


class ByHand:
    """Takes jobs and changes each in one multi. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet) -> None:
        self.set = queue_set
        self.stops = Stops(queue_set)
        self._slots = Slots(queue_set.session, Nodes(queue_set.layout.root), queue_set.pools)

    @contextmanager
    def taken(self, job_id: str, *, force: bool = False, remedy: str = "try again later") -> Iterator[Claim]:
        """A claim on the job for the time of the context.

        Raises ItemNotFound, CorruptRecord, and JobHeld unless forced: its holder then loses its claim.
        """
        try:
            claim = self.set.claim_by_id(job_id, force=force)
        except ItemHeld as error:
            raise JobHeld(job_id, error.holder, remedy) from error
        except NotClaimed as error:
            raise StateConflict(
                f"job {job_id!r} could not be taken: {error.reason}; try again, or bring it back with "
                f"`orchestrator queue replay {job_id}` if `orchestrator queue show dead` names it"
            ) from error
        try:
            yield claim
        finally:
            claim.give_up()

    def belongings(self, job_id: str) -> Belongings:
        """What hangs below the record of a job now."""
        return Belongings.read(self.set.session, self.set.layout.record(job_id))

    def left_behind(self, claim: Claim, *pools: str) -> list[Delete]:
        """What takes away requests to stop the job, here and in `pools`, and its places of a running job."""
        record = claim.record
        stops = self.stops.removals({record.pool, *pools}, record.id, record.run_key)
        try:
            state = state_of(record)
        except CorruptRecord:  # then it does not say which places it has
            return stops
        return [*stops, *self._slots.release(record.pool, state, record.run_key)]

    def commit(
        self,
        claim: Claim,
        state: JobState,
        queue: Queue,
        *,
        pool: str | None = None,
        due: int | None = None,
        extra: Callable[[], Sequence[Operation]] = tuple,
    ) -> None:
        """Give the job this state in this queue and let go of it; what `extra` looks up rides along."""
        payload = state.model_dump(mode="json", exclude_defaults=True)
        insist(
            lambda: claim.commit(
                payload=payload, queue=queue, pool=pool, due=due, extra=extra(), release=True
            )
        )


def insist(act: Callable[[], None]) -> None:
    """Do it, and again when somebody was faster at a node that rides along; raises Conflict in the end."""
    for tries_left in reversed(range(_MAX_TRIES)):
        try:
            act()
        except Conflict:
            if not tries_left:
                raise
        else:
            return
