"""Which moves by hand are sane, and what they make of a job.

A status must stay true: nobody can say by hand that a job has succeeded, or that it runs. And an open attempt
is never abandoned: its driver is looked after in `running` and `kill` alone.
"""

from collections.abc import Mapping

from orchestrator.errors import MoveRefused
from orchestrator.job_nodes import JobNodes
from orchestrator.models.job import JobError, JobState
from orchestrator.states import FINAL, Queue, Status
from queues.documents import timestamp
from spark_runner.attempt import AttemptState

MOVES: Mapping[Queue, Mapping[Queue, Status | None]] = {
    Queue.ACCEPT: {
        Queue.FAIL: Status.ERROR_FAIL,  # given up; whoever is to be told is told
        Queue.KILL: Status.CANCEL,  # stopped before it began
        Queue.FINISH: Status.CANCEL,  # likewise, and nobody is told
        Queue.DEAD: Status.DEAD,  # put aside
    },
    Queue.RUNNING: {
        Queue.KILL: Status.KILL,  # what `job kill` does
        Queue.DEAD: Status.DEAD,  # put aside, once its attempt has ended
    },
    Queue.SUCCESS: {
        Queue.FINISH: None,  # nobody is told
        Queue.DEAD: Status.DEAD,
    },
    Queue.FAIL: {
        Queue.ACCEPT: Status.ACCEPT,  # once more, now
        Queue.KILL: Status.CANCEL,  # not once more
        Queue.FINISH: None,  # not once more, and nobody is told
        Queue.DEAD: Status.DEAD,
    },
    Queue.KILL: {
        Queue.RUNNING: Status.RUNNING,  # the request to stop is taken back, as long as its driver is there
        Queue.FINISH: None,  # nobody is told
        Queue.DEAD: Status.DEAD,
    },
    Queue.FINISH: {},
    Queue.DEAD: {},
}
"""From where a job stands to where it may be brought, and its status there; None = the one that it has."""

_INSTEAD = {
    Queue.FINISH: "it has ended; `orchestrator job retry {id}` runs it again",
    Queue.DEAD: "`orchestrator queue replay {id}` brings it back, `job retry {id}` starts it anew",
}


def stands_in(state: JobState, queue: Queue) -> Queue:
    """The queue that a job belongs to: of its status, unless it has ended or is dead."""
    return queue if queue in _INSTEAD else state.status.queue


def moved(job_id: str, state: JobState, queue: Queue, target: Queue, belongings: JobNodes) -> JobState:
    """The state of a job that is brought from `queue` to `target`; raises MoveRefused, AttemptOpen."""
    source = stands_in(state, queue)
    if target not in MOVES[source] and target is not source:
        can = ", ".join(MOVES[source]) or "nowhere"
        instead = _INSTEAD.get(source, f"it can be brought to: {can}").format(id=job_id)
        raise MoveRefused(
            f"job {job_id!r} is {state.status} in {source} and not moved to {target}: {instead}"
        )
    if target not in {Queue.RUNNING, Queue.KILL}:
        belongings.check_closed(job_id, queue)
    _check_truth(job_id, state, source, target, belongings)
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
            error_class="operator", type="Moved", message=f"moved from {source} to {target} by hand"
        )
        changes["error"] = error
    if target is Queue.DEAD:
        changes["buried_from"] = {"queue": queue.value, "status": state.status.value}
        changes["buried_error"] = state.error
    return state.evolve(**changes)


def _check_truth(job_id: str, state: JobState, source: Queue, target: Queue, belongings: JobNodes) -> None:
    """Raise MoveRefused where the attempt, which only a worker weighs, would be passed over."""
    last = belongings.last
    if source is Queue.KILL and target is Queue.RUNNING and not belongings.in_use:
        raise MoveRefused(
            f"job {job_id!r} has no driver that could go on: it stays in kill, until a worker comes"
        )
    if source is not Queue.KILL or target is not Queue.FINISH or state.status is Status.CANCEL:
        return
    if last is not None and last.state is not AttemptState.KILLED:
        raise MoveRefused(
            f"the last attempt of job {job_id!r} has {last.state} before it could be killed, and a worker "
            "has to say so: it stays in kill until one comes"
        )
