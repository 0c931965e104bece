"""The moves that an operator may make, and the state of a job after each.

A status must stay true: no operator can declare that a job has succeeded, or that it runs. An open attempt is
never abandoned: only the queues `running` and `kill` supervise its driver.
"""

from collections.abc import Mapping

from orchestrator.model.errors import MoveRefused
from orchestrator.model.job import JobError, JobState
from orchestrator.model.job_nodes import JobNodes
from orchestrator.model.states import FINAL, Queue, Status
from queues import timestamp
from spark_runner.protocol.attempt import AttemptState

MOVES: Mapping[Queue, Mapping[Queue, Status | None]] = {
    Queue.ACCEPT: {
        Queue.FAIL: Status.ERROR_FAIL,  # given up; its callback is sent
        Queue.KILL: Status.CANCEL,  # killed before it started
        Queue.FINISH: Status.CANCEL,  # likewise, without a callback
        Queue.DEAD: Status.DEAD,  # set aside
    },
    Queue.RUNNING: {
        Queue.KILL: Status.KILL,  # as `job kill`
        Queue.DEAD: Status.DEAD,  # set aside, once its attempt has ended
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
