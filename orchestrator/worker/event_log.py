"""The event log: each committed transition as a log record, and as calls of the hooks."""

from orchestrator.handlers.hooks import Hooks
from orchestrator.history.log_records import REMOVAL, about
from orchestrator.model.job import JobState
from orchestrator.model.states import Queue, Status
from orchestrator.worker.transitions import JobTransition

_UNDER_WAY = {Status.RUNNING, Status.RUNNING_WARN, Status.KILL}
_OUTCOMES = {Queue.SUCCESS, Queue.FAIL, Queue.FINISH}
_MAX_LOGGED_CHARACTERS = 200


def log_transition(change: JobTransition, hooks: Hooks) -> None:
    """Log a committed transition, and call the hooks."""
    job, before, after, queue = change.job, change.before, change.after, change.queue
    record = job.claim.record
    if (waiting := change.waiting) is not None:
        hooks.fire(lambda hook: hook.after_decline(job.id, waiting))
    if change.removes and before is not None:
        about(record, change.source, before, action=REMOVAL).info("{} removed", job.id)
        hooks.fire(lambda hook: hook.after_removal(job.id, before))
    if before is None or queue is None:
        return
    if after is None:  # a dead letter may keep a payload that is no JobState
        if queue is Queue.DEAD:
            about(record, queue, before.evolve(status=Status.DEAD)).info(
                "{} {} -> {}", job.id, change.source, queue
            )
        return
    text = "{} {} -> {} {}{}"
    about(record, queue, after).info(text, job.id, change.source, queue, after.status, _reason(after))
    if before.status in _UNDER_WAY and queue in _OUTCOMES:
        hooks.fire(lambda hook: hook.after_outcome(job.id, after))
    hooks.fire(lambda hook: hook.after_transition(job.id, before, after, queue))


def _reason(state: JobState) -> str:
    # One event is one line of the log, even when the text of a user has several.
    text = state.warning if state.warning is not None else (state.error.message if state.error else "")
    return ": " + " ".join(text.split())[:_MAX_LOGGED_CHARACTERS] if text else ""
