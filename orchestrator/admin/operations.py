"""Admin operations on jobs that the transition table does not have: retry, move, requeue."""

from collections.abc import Callable

from orchestrator.admin.job_changes import Operator
from orchestrator.admin.moves import home_queue, moved
from orchestrator.model.act import Act
from orchestrator.model.errors import AlreadyEnded, MoveRefused, NotEnded
from orchestrator.model.job import JobState, JobView
from orchestrator.model.records import state_of, view_of
from orchestrator.model.states import Queue, Status
from queues import LOW, Claim, Operation, Record, timestamp

_HOLDS_SLOTS = {Queue.RUNNING, Queue.KILL}


_RESET = (
    "failures",
    "submissions",
    "demotions",
    "handler_errors",
    "callback",
    "error",
    "warning",
    "started",
    "ended",
    "application_id",
    "last_seen",
    "polls",
    "unknown_answers",
    "undelivered",
    "slot",
    "name_slot",
    "archive",
    "buried_from",
    "buried_error",
)


def reopened(state: JobState) -> JobState:
    """The state of an ended job that an operator brings back to accept.

    Its counters restart. The number of its last attempt stays: the external names of its runs contain it.
    """
    now = timestamp()
    reset = {name: JobState.model_fields[name].get_default() for name in _RESET}
    times = {**state.times, Queue.ACCEPT.value: now}
    return state.evolve(**reset, status=Status.ACCEPT, updated=now, times=times)


class JobOperations:
    """Each act is one claim and one multi; each can raise ItemNotFound, CorruptRecord and JobHeld.

    Each checks the job before the claim, too, so that an operation that makes no sense is refused with that
    reason and not with the holder of the job. Only the second check, under the claim, decides.
    """

    def __init__(self, operator: Operator, retention: Callable[[], float]) -> None:
        """`retention`: the seconds for which finish keeps a job."""
        self._set = operator.set
        self._operator = operator
        self._retention = retention

    def retry(self, job_id: str, *, force: bool = False) -> JobView:
        """Bring an ended job back to accept, with all its tries; a successful one only by force.

        A demoted job returns to its pool. Raises NotEnded, AlreadyEnded, AttemptOpen, JobHeld, ItemNotFound,
        CorruptRecord.
        """
        self._check_ended(self._set.get(job_id), force=force)
        with self._operator.claimed(job_id) as claim:
            self._check_ended(claim.record, force=force)
            pool = claim.record.pool.removesuffix(LOW)
            self._operator.commit(
                claim,
                reopened(state_of(claim.record)),
                Queue.ACCEPT,
                act=self._operator.trail.act("retry", _route(claim.record, Queue.ACCEPT)),
                pool=pool,
                due=self._set.clock.now_ms(),
                extra=lambda: self._operator.side_nodes.removals(claim.record, pool),
            )
        return view_of(claim.record)

    def _check_ended(self, record: Record, *, force: bool) -> None:
        view = view_of(record)
        if not view.is_final:
            raise NotEnded(f"job {view.id!r} has not ended: it is {view.status} in {view.queue}")
        if view.status is Status.SUCCESS and not force:
            raise AlreadyEnded(f"job {view.id!r} has ended as SUCCESS; it can be run again only with force")
        self._operator.job_nodes(view.id).check_closed(view.id, view.queue)

    def move(self, job_id: str, queue: Queue, *, force: bool = False) -> JobView:
        """Move a job to another queue, by force also when it is held; see `orchestrator.admin.moves`.

        It is due at once, in finish after the retention. Raises MoveRefused, AttemptOpen, JobHeld,
        ItemNotFound, CorruptRecord.
        """
        self._moved(self._set.get(job_id), queue)
        with self._operator.claimed(job_id, force=force, remedy="wait, or move it by force") as claim:
            after = self._moved(claim.record, queue)
            if claim.queue == queue and after.status is state_of(claim.record).status:
                return view_of(claim.record)
            delay = self._retention() if queue is Queue.FINISH else 0.0
            route = _route(claim.record, queue) + (" by force" if force else "")
            act = self._operator.trail.act("move", route)
            self._operator.commit(
                claim,
                after,
                queue,
                act=act,
                # Nothing is due in dead: a replayed job keeps its due time.
                due=None if queue is Queue.DEAD else self._set.clock.now_ms() + round(delay * 1000),
                extra=lambda: self._extra_operations(claim, queue, act),
            )
        return view_of(claim.record)

    def _moved(self, record: Record, queue: Queue) -> JobState:
        source, job_nodes = Queue(record.queue), self._operator.job_nodes(record.id)
        after = moved(record.id, state_of(record), source, queue, job_nodes)
        return after if queue in _HOLDS_SLOTS else after.evolve(slot=None, name_slot=None)

    def _extra_operations(self, claim: Claim, queue: Queue, act: Act) -> list[Operation]:
        match queue:
            case Queue.KILL:  # a driver that no worker reaches obeys the request by itself
                return self._operator.side_nodes.stop_creation(claim.record, act)
            case Queue.RUNNING:
                return [*self._operator.side_nodes.stop_removals(claim.record)]
            case _:
                return [*self._operator.side_nodes.removals(claim.record)]

    def requeue(self, job_id: str, *, delay: float = 0.0) -> JobView:
        """Make a job due after `delay` seconds in its queue; in finish, it is removed then.

        Raises MoveRefused for a job in dead, where nothing is ever due, AttemptOpen, JobHeld, ItemNotFound,
        CorruptRecord.
        """
        self._check_due(self._set.get(job_id))
        with self._operator.claimed(job_id) as claim:
            record = claim.record
            self._check_due(record)
            due = self._set.clock.now_ms() + round(delay * 1000)
            self._operator.commit(
                claim,
                state_of(record),
                Queue(record.queue),
                act=self._operator.trail.act("requeue", f"due in {record.queue} after {delay:g} s"),
                due=due,
                keeps_failures=True,
            )
        return view_of(claim.record)

    def _check_due(self, record: Record) -> None:
        queue = home_queue(state_of(record), Queue(record.queue))
        if queue is Queue.DEAD:
            raise MoveRefused(
                f"job {record.id!r} is in dead, where nothing is ever due; "
                f"`orchestrator queue replay {record.id}` brings it back"
            )
        self._operator.job_nodes(record.id).check_closed(record.id, queue)


def _route(record: Record, queue: Queue) -> str:
    return f"{record.queue} -> {queue}"
