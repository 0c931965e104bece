"""The base of all admin operations on one job: claim it, change it in one multi, record the act."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from orchestrator.admin.stops import SideNodes
from orchestrator.audit.trail import Trail
from orchestrator.model.act import Act, with_act
from orchestrator.model.errors import JobHeld, StateConflict
from orchestrator.model.job import JobState
from orchestrator.model.job_nodes import JobNodes
from orchestrator.model.paths import Nodes
from orchestrator.model.states import Queue, Status
from queues import Claim, Conflict, ItemHeld, NotClaimed, Operation, QueueSet

_MAX_TRIES = 10  # a node in the multi is created or removed meanwhile: another client was faster


class Operator:
    """Claims jobs as an operator and changes each in one multi. Safe to use from several threads."""

    def __init__(self, queue_set: QueueSet) -> None:
        self.set = queue_set
        self.trail = Trail(queue_set.session, Nodes(queue_set.layout.root))
        self.side_nodes = SideNodes(queue_set)

    @contextmanager
    def claimed(
        self, job_id: str, *, force: bool = False, remedy: str = "try again later"
    ) -> Iterator[Claim]:
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

    def job_nodes(self, job_id: str) -> JobNodes:
        """The nodes below the record of a job as they are now."""
        return JobNodes.read(self.set.session, self.set.layout.record(job_id))

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
        """Move the job to this queue with this state and release it, in one multi.

        The multi includes the operations that `extra` returns, the act in the record of the job, and its
        entry in the audit trail.
        """
        state = state.evolve(actions=with_act(state.actions, act))
        payload = state.to_payload()
        record = claim.record
        retry_on_conflict(
            lambda: claim.commit(
                payload=payload,
                queue=queue,
                pool=pool,
                due=due,
                failures=record.failures if keeps_failures else 0,
                error=record.error if keeps_failures else None,
                extra=[*extra(), *self.entries(act, claim, state)],
                release=True,
            )
        )

    def entries(self, act: Act, claim: Claim, after: JobState | None) -> list[Operation]:
        """The audit entries of an act that gives a job a state; None = the act removes the job."""
        leaves = after is None or after.status is not Status.ACCEPT
        submissions = self.trail.submission_entries(claim.record) if leaves else []
        return [self.trail.job_entry(act, claim.record), *submissions]


def retry_on_conflict(act: Callable[[], None]) -> None:
    """Call `act`, again after each Conflict, at most 10 times; then raises the Conflict."""
    for tries_left in reversed(range(_MAX_TRIES)):
        try:
            act()
        except Conflict:
            if not tries_left:
                raise
        else:
            return
