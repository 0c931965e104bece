"""Changing one job as its holder would: what all operators' acts share."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from orchestrator.admission.slots import Slots
from orchestrator.audit.trail import Trail
from orchestrator.errors import JobHeld, StateConflict
from orchestrator.job_nodes import JobNodes
from orchestrator.models.act import Act, with_act
from orchestrator.models.job import JobState
from orchestrator.nodes import Nodes
from orchestrator.operating.stops import Stops
from orchestrator.records import state_of
from orchestrator.states import Queue, Status
from queues.claim import Claim
from queues.errors import Conflict, CorruptRecord, ItemHeld, NotClaimed
from queues.operations import Delete, Operation
from queues.queue import QueueSet
from queues.record import Record

_MAX_TRIES = 10  # a node that rides along comes or goes in the moment of the change: somebody was faster


class ByHand:
    """Takes jobs and changes each in one multi. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet) -> None:
        self.set = queue_set
        nodes = Nodes(queue_set.layout.root)
        self.trail = Trail(queue_set.session, nodes)
        self.stops = Stops(queue_set)
        self._slots = Slots(queue_set.session, nodes, queue_set.pools)

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

    def belongings(self, job_id: str) -> JobNodes:
        """What hangs below the record of a job now."""
        return JobNodes.read(self.set.session, self.set.layout.record(job_id))

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
        act: Act,
        pool: str | None = None,
        due: int | None = None,
        keeps_failures: bool = False,
        extra: Callable[[], Sequence[Operation]] = tuple,
    ) -> None:
        """Give the job this state in this queue and let go of it; what `extra` looks up rides along.

        The act stands in its record from then on, and rides along as an entry of the trail.
        """
        state = state.evolve(actions=with_act(state.actions, act))
        payload = state.model_dump(mode="json", exclude_defaults=True)
        record = claim.record
        insist(
            lambda: claim.commit(
                payload=payload,
                queue=queue,
                pool=pool,
                due=due,
                failures=record.failures if keeps_failures else 0,
                error=record.error if keeps_failures else None,
                extra=[*extra(), *self.entries(act, record, state)],
                release=True,
            )
        )

    def entries(self, act: Act, record: Record, after: JobState | None) -> list[Operation]:
        """The entries of the trail for an act that brings a job to a state; None = it is removed."""
        leaves = after is None or after.status is not Status.ACCEPT
        submissions = self.trail.submission_entries(record) if leaves else []
        return [self.trail.job_entry(act, record), *submissions]


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
