"""Brings jobs back from dead to the queues that they came from."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from orchestrator.admin.job_changes import Operator
from orchestrator.handlers.verdict import verdict_of_attempt
from orchestrator.model.errors import NotDead, OrchestratorError, StateConflict
from orchestrator.model.job import JobError, JobState, state_of
from orchestrator.model.job_nodes import JobNodes
from orchestrator.model.states import FINAL, Queue, Status
from queues import Claim, NotClaimed, QueueError, Refusal, Token, decode, timestamp

_STATUS_OF = {
    Queue.ACCEPT: Status.ACCEPT,
    Queue.RUNNING: Status.RUNNING,
    Queue.SUCCESS: Status.SUCCESS,
    Queue.FAIL: Status.ERROR_FAIL,
    Queue.KILL: Status.KILL,
}


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result for one job: its queue, or the error for which it stays in dead."""

    id: str
    queue: Queue | None = None
    error: QueueError | OrchestratorError | None = None


class Replay:
    """Brings jobs back one by one: a job that cannot be brought back stays, with its error in the result."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._set = operator.set

    def replay(self, ids: Iterable[str] | None = None) -> list[Replayed]:
        """Bring these jobs back from dead, or all that are there; never raises for a single job."""
        wanted = None if ids is None else dict.fromkeys(ids)
        done = dict[str, Replayed]()
        for pool in self._set.pools.names(low=True):
            for token in self._set.tokens(Queue.DEAD, pool):
                if wanted is None or token.id in wanted:
                    done[token.id] = self._try(pool, token)
        for job_id in wanted or ():
            if job_id not in done:
                done[job_id] = Replayed(job_id, error=self._why_missing(job_id))
        return [done[job_id] for job_id in (done if wanted is None else wanted)]

    def _try(self, pool: str, token: Token) -> Replayed:
        try:
            return Replayed(token.id, queue=self._replay(pool, token))
        except (QueueError, OrchestratorError) as error:
            return Replayed(token.id, error=error)

    def _why_missing(self, job_id: str) -> QueueError | OrchestratorError:
        try:
            record = self._set.get(job_id)
        except QueueError as error:
            return error
        return NotDead(f"job {job_id!r} is not in dead but in {record.queue}")

    def _replay(self, pool: str, token: Token) -> Queue:
        note = self._set.session.get(self._set.layout.token(Queue.DEAD, pool, token))
        claim = self._set.claim(
            Queue.DEAD, pool, token
        )  # by its token: an unreadable record may name another place
        if claim is None:
            raise NotClaimed(token.id, Refusal.HELD)
        try:
            before = state_of(claim.record)
            job_nodes = self._operator.job_nodes(token.id)
            queue, status = _origin(before, claim, b"" if note is None else note[0], job_nodes)
            self._operator.commit(
                claim,
                _restored(before, queue, status, job_nodes),
                queue,
                act=self._operator.trail.act("replay", f"dead -> {queue}"),
                due=max(token.due, self._set.clock.now_ms()),
                extra=lambda: self._operator.side_nodes.removals(claim.record),
            )
        finally:
            claim.give_up()
        return queue


def _origin(state: JobState, claim: Claim, note: bytes, job_nodes: JobNodes) -> tuple[Queue, Status]:
    """The queue to which a job returns, and its status there; raises StateConflict."""
    noted = _queue((claim.record.error or {}).get("queue")) or _queue(_decoded(note).get("queue"))
    status: Status
    if state.status is not Status.DEAD:  # its unreadable record was left unchanged, and has been repaired
        queue, status = noted or state.status.queue, state.status
    elif (recorded := _recorded(state)) is not None:
        queue, status = recorded
    elif noted is Queue.FINISH:
        queue, status = noted, _ended_as(claim.id, job_nodes)
    else:
        queue, status = noted or Queue.ACCEPT, _STATUS_OF[noted or Queue.ACCEPT]
    if queue is Queue.FINISH and status in FINAL:
        return queue, status
    if job_nodes.in_use and status.queue not in {Queue.RUNNING, Queue.KILL}:
        return Queue.RUNNING, Status.RUNNING  # its driver needs supervision, whatever was noted
    return status.queue, status


def _recorded(state: JobState) -> tuple[Queue, Status] | None:
    origin = state.buried_from or {}
    queue, status = _queue(origin.get("queue")), origin.get("status")
    if queue is None or status not in set(Status) - {Status.DEAD}:
        return None
    return queue, Status(status)


def _queue(name: object) -> Queue | None:
    return Queue(name) if isinstance(name, str) and name in set(Queue) - {Queue.DEAD} else None


def _ended_as(job_id: str, job_nodes: JobNodes) -> Status:
    if job_nodes.last is None or job_nodes.in_use:
        raise StateConflict(
            f"the end of job {job_id!r} was not recorded; `orchestrator job retry {job_id}` restarts it"
        )
    return verdict_of_attempt(job_nodes.last).status


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        return decode(data)
    except ValueError:
        return {}


def _restored(before: JobState, queue: Queue, status: Status, job_nodes: JobNodes) -> JobState:
    """The state without the causes of its death: errors of handlers, and demotions."""
    now = timestamp()
    return before.evolve(
        status=status,
        handler_errors=0,
        demotions=0,
        error=_error(before, status, job_nodes),
        slot=None,
        name_slot=None,
        buried_from=None,
        buried_error=None,
        updated=now,
        times={**before.times, queue.value: now},
    )


def _error(before: JobState, status: Status, job_nodes: JobNodes) -> JobError | None:
    if before.buried_error is not None or status is not Status.ERROR_FAIL:
        return before.buried_error
    # No error was recorded: `retry.on` then decides by the outcome of the attempt.
    last = job_nodes.last
    verdict = None if last is None or last.state.is_open else verdict_of_attempt(last)
    return before.error if verdict is None or verdict.error is None else verdict.error
