"""What operators do to jobs beside the transition table: run again, move, delay."""

from collections.abc import Callable

from orchestrator.errors import AlreadyEnded, MoveRefused, NotEnded
from orchestrator.models.act import Act
from orchestrator.models.job import JobState, JobView
from orchestrator.operating.by_hand import Operator
from orchestrator.operating.moves import moved, stands_in
from orchestrator.records import state_of, view_of
from orchestrator.states import Queue, Status
from queues.claim import Claim
from queues.documents import timestamp
from queues.names import LOW
from queues.operations import Operation
from queues.record import Record

_HOLDS_PLACES = {Queue.RUNNING, Queue.KILL}


_COUNTED_ANEW = (
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
    """A job that has ended, as it is when it is brought back to accept by hand.

    All that was counted against it is counted anew. The number of its last attempt stays: the names of its
    runs in the outside world are made of it.
    """
    now = timestamp()
    anew = {name: JobState.model_fields[name].get_default() for name in _COUNTED_ANEW}
    times = {**state.times, Queue.ACCEPT.value: now}
    return state.evolve(**anew, status=Status.ACCEPT, updated=now, times=times)


class JobOperations:
    """Each act is one claim and one multi; each can raise ItemNotFound, CorruptRecord and JobHeld.

    What is looked at is looked at before the claim too: who asks for what makes no sense hears that, and not
    who holds the job. Only the second look, with the claim in hand, decides.
    """

    def __init__(self, operator: Operator, retention: Callable[[], float]) -> None:
        """`retention`: the seconds for which finish keeps a job."""
        self._set = operator.set
        self._operator = operator
        self._retention = retention

    def retry(self, job_id: str, *, force: bool = False) -> JobView:
        """Bring a job that has ended back to accept, with all its tries; a success only by force.

        A demoted job goes back to its pool. Raises NotEnded, AlreadyEnded, AttemptOpen.
        """
        self._check_ended(self._set.get(job_id), force=force)
        with self._operator.claimed(job_id) as claim:
            self._check_ended(claim.record, force=force)
            pool = claim.record.pool.removesuffix(LOW)
            self._operator.commit(
                claim,
                reopened(state_of(claim.record)),
                Queue.ACCEPT,
                act=self._operator.trail.act("retry", _way(claim.record, Queue.ACCEPT)),
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
            raise AlreadyEnded(f"job {view.id!r} has ended as SUCCESS; only by force it is run again")
        self._operator.belongings(view.id).check_closed(view.id, view.queue)

    def move(self, job_id: str, queue: Queue, *, force: bool = False) -> JobView:
        """Bring a job to another queue, by force from whoever holds it; see `orchestrator.operating.moves`.

        It is due at once; in finish after as many seconds as `retention` says. Raises MoveRefused,
        AttemptOpen.
        """
        self._moved(self._set.get(job_id), queue)
        with self._operator.claimed(job_id, force=force, remedy="wait, or take it by force") as claim:
            after = self._moved(claim.record, queue)
            if claim.queue == queue and after.status is state_of(claim.record).status:
                return view_of(claim.record)
            delay = self._retention() if queue is Queue.FINISH else 0.0
            way = _way(claim.record, queue) + (" by force" if force else "")
            act = self._operator.trail.act("move", way)
            self._operator.commit(
                claim,
                after,
                queue,
                act=act,
                # In dead nothing is due, and what goes back from there is due when it would have been.
                due=None if queue is Queue.DEAD else self._set.clock.now_ms() + round(delay * 1000),
                extra=lambda: self._riders(claim, queue, act),
            )
        return view_of(claim.record)

    def _moved(self, record: Record, queue: Queue) -> JobState:
        stands, belongings = Queue(record.queue), self._operator.belongings(record.id)
        after = moved(record.id, state_of(record), stands, queue, belongings)
        return after if queue in _HOLDS_PLACES else after.evolve(slot=None, name_slot=None)

    def _riders(self, claim: Claim, queue: Queue, act: Act) -> list[Operation]:
        match queue:
            case Queue.KILL:  # a driver that no worker reaches obeys the request by itself
                return self._operator.side_nodes.stop_creation(claim.record, act)
            case Queue.RUNNING:
                return [*self._operator.side_nodes.stop_removals(claim.record)]
            case _:
                return [*self._operator.side_nodes.removals(claim.record)]

    def requeue(self, job_id: str, *, delay: float = 0.0) -> JobView:
        """Make a job due after `delay` seconds where it stands; in finish, that is when it is removed.

        Raises MoveRefused for one in dead, where nothing is ever due, and AttemptOpen.
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
        queue = stands_in(state_of(record), Queue(record.queue))
        if queue is Queue.DEAD:
            raise MoveRefused(
                f"job {record.id!r} is in dead, where nobody waits for it; "
                f"`orchestrator queue replay {record.id}` brings it back"
            )
        self._operator.belongings(record.id).check_closed(record.id, queue)


def _way(record: Record, queue: Queue) -> str:
    return f"{record.queue} -> {queue}"
