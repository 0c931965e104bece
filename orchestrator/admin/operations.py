"""Operations on jobs beside the transition table: run again, move and delay; and the moves that are valid.

A status must stay true: no operator can declare that a job has succeeded, or that it runs. An open attempt is
never abandoned: only the queues `running` and `kill` supervise its driver.
"""

from collections.abc import Callable, Mapping

from orchestrator.admin.job_changes import Operator
from orchestrator.history.successes import KnownSuccesses
from orchestrator.model.act import Act
from orchestrator.model.errors import AlreadyEnded, MoveRefused, NotEnded
from orchestrator.model.job import JobError, JobState, state_of
from orchestrator.model.job_nodes import JobNodes
from orchestrator.model.job_view import JobView
from orchestrator.model.states import FINAL, Queue, Status
from queues import LOW_LANE_SUFFIX, Claim, Operation, Record, timestamp
from spark_runner.protocol.attempt import AttemptState

MOVES: Mapping[Queue, Mapping[Queue, Status | None]] = {
    Queue.ACCEPT: {
        Queue.FAIL: Status.ERROR_FAIL,  # given up; its callback is sent
        Queue.KILL: Status.CANCEL,  # killed before it started
        Queue.FINISH: Status.CANCEL,  # likewise, without a callback
        Queue.DEAD: Status.DEAD,  # a dead letter
    },
    Queue.RUNNING: {
        Queue.KILL: Status.KILL,  # as `job kill`
        Queue.DEAD: Status.DEAD,  # a dead letter, once its attempt has ended
    },
    Queue.SUCCESS: {
        Queue.FINISH: None,  # without a callback
        Queue.DEAD: Status.DEAD,
    },
    Queue.FAIL: {
        Queue.ACCEPT: Status.ACCEPT,  # retried now
        Queue.KILL: Status.CANCEL,  # not retried
        Queue.FINISH: None,  # not retried, without a callback
        Queue.DEAD: Status.DEAD,
    },
    Queue.KILL: {
        Queue.RUNNING: Status.RUNNING,  # the kill is withdrawn, while its driver still runs
        Queue.FINISH: None,  # without a callback
        Queue.DEAD: Status.DEAD,
    },
    Queue.FINISH: {},
    Queue.DEAD: {},
}
"""Queue of a job -> queues to which it may move -> its status there; None = unchanged."""

_INSTEAD = {
    Queue.FINISH: "it has ended; `orchestrator job retry {id}` runs it again",
    Queue.DEAD: "`orchestrator queue replay {id}` brings it back, `job retry {id}` restarts it",
}


def home_queue(state: JobState, queue: Queue) -> Queue:
    """The queue that a job belongs to: that of its status, unless it has ended or is dead."""
    return queue if queue in _INSTEAD else state.status.queue


def moved(job_id: str, state: JobState, queue: Queue, target: Queue, job_nodes: JobNodes) -> JobState:
    """The state of a job after a move from `queue` to `target`; raises MoveRefused, AttemptOpen."""
    source = home_queue(state, queue)
    if target not in MOVES[source] and target is not source:
        can = ", ".join(MOVES[source]) or "nowhere"
        instead = _INSTEAD.get(source, f"it can be moved to: {can}").format(id=job_id)
        raise MoveRefused(
            f"job {job_id!r} is {state.status} in {source} and cannot be moved to {target}: {instead}"
        )
    if target not in {Queue.RUNNING, Queue.KILL}:
        job_nodes.check_closed(job_id, queue)
    _check_truth(job_id, state, source, target, job_nodes)
    status = MOVES[source].get(target) or state.status
    now = timestamp()
    changes: dict[str, object] = {
        "status": status,
        "handler_errors": 0,
        "updated": now,
        "times": {**state.times, target.value: now},
    }
    if status in FINAL and state.ended is None:
        changes["ended"] = now
    if target in {Queue.FAIL, Queue.DEAD} and target is not source:
        error = JobError(
            error_class="operator", type="Moved", message=f"moved from {source} to {target} by an operator"
        )
        changes["error"] = error
    if target is Queue.DEAD:
        changes["buried_from"] = {"queue": queue.value, "status": state.status.value}
        changes["buried_error"] = state.error
    return state.evolve(**changes)


def _check_truth(job_id: str, state: JobState, source: Queue, target: Queue, job_nodes: JobNodes) -> None:
    """Raise MoveRefused where the move would ignore an attempt that a worker has to judge."""
    last = job_nodes.last
    if source is Queue.KILL and target is Queue.RUNNING and not job_nodes.in_use:
        raise MoveRefused(
            f"job {job_id!r} has no driver that could continue: it stays in kill until a worker ends it"
        )
    if source is not Queue.KILL or target is not Queue.FINISH or state.status is Status.CANCEL:
        return
    if last is not None and last.state is not AttemptState.KILLED:
        raise MoveRefused(
            f"the last attempt of job {job_id!r} ended as {last.state} before it could be killed, and "
            "only a worker can record that: the job stays in kill until one does"
        )


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
    "history",
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
    fresh = JobState.enqueued(state.name)
    reset = {name: getattr(fresh, name) for name in _RESET}
    times = {**state.times, Queue.ACCEPT.value: now}
    return state.evolve(**reset, status=Status.ACCEPT, updated=now, times=times)


class JobOperations:
    """Each act is one claim and one multi; each can raise ItemNotFound, CorruptRecord and JobHeld.

    Each checks the job before the claim, too, so that an operation that makes no sense is refused with that
    reason and not with the holder of the job. Only the second check, under the claim, decides.
    """

    def __init__(self, operator: Operator, retention: Callable[[], float], successes: KnownSuccesses) -> None:
        """`retention`: the seconds for which finish keeps a job."""
        self._successes = successes
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
            pool = claim.record.pool.removesuffix(LOW_LANE_SUFFIX)
            self._operator.commit(
                claim,
                reopened(state_of(claim.record)),
                Queue.ACCEPT,
                act=self._operator.trail.act("retry", _route(claim.record, Queue.ACCEPT)),
                pool=pool,
                due=self._set.clock.now_ms(),
                extra=lambda: self._operator.side_nodes.removals(claim.record, pool),
            )
        return JobView.of(claim.record)

    def _check_ended(self, record: Record, *, force: bool) -> None:
        view = JobView.of(record)
        if not view.is_final:
            raise NotEnded(f"job {view.id!r} has not ended: it is {view.status} in {view.queue}")
        if view.status is Status.SUCCESS and not force:
            raise AlreadyEnded(f"job {view.id!r} has ended as SUCCESS; it can be run again only with force")
        self._operator.job_nodes(view.id).check_closed(view.id, view.queue)

    def move(self, job_id: str, queue: Queue, *, force: bool = False) -> JobView:
        """Move a job to another queue, by force also when it is held; see `orchestrator.admin.operations`.

        It is due at once, in finish after the retention. Raises MoveRefused, AttemptOpen, JobHeld,
        ItemNotFound, CorruptRecord.
        """
        self._moved(self._set.get(job_id), queue)
        with self._operator.claimed(job_id, force=force, remedy="wait, or move it by force") as claim:
            after = self._moved(claim.record, queue)
            if claim.queue == queue and after.status is state_of(claim.record).status:
                return JobView.of(claim.record)
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
                extra=lambda: self._extra_operations(claim, queue, act, after),
            )
        return JobView.of(claim.record)

    def _moved(self, record: Record, queue: Queue) -> JobState:
        source, job_nodes = Queue(record.queue), self._operator.job_nodes(record.id)
        after = moved(record.id, state_of(record), source, queue, job_nodes)
        return after if queue in _HOLDS_SLOTS else after.evolve(slot=None, name_slot=None)

    def _extra_operations(self, claim: Claim, queue: Queue, act: Act, after: JobState) -> list[Operation]:
        match queue:
            case Queue.KILL:  # a driver that no worker reaches obeys the request by itself
                return self._operator.side_nodes.stop_creation(claim.record, act)
            case Queue.RUNNING:
                return [*self._operator.side_nodes.stop_removals(claim.record)]
            case Queue.FINISH if after.status is Status.SUCCESS:
                now = self._set.clock.now_ms()
                reported = self._successes.operations(after.name, claim.record, after.attempt, now)
                return [*self._operator.side_nodes.removals(claim.record), *reported]
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
        return JobView.of(claim.record)

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
