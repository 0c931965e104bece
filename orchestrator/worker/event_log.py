"""What is said of a change that was committed: to the log, and to the hooks."""

from orchestrator.hooks import Hooks
from orchestrator.models.job import JobState
from orchestrator.states import Queue, Status
from orchestrator.transitions import REMOVAL, about
from orchestrator.worker.transitions import JobTransition

_UNDER_WAY = {Status.RUNNING, Status.RUNNING_WARN, Status.KILL}
_OUTCOMES = {Queue.SUCCESS, Queue.FAIL, Queue.FINISH}
_MAX_LOGGED_CHARACTERS = 200


def log_transition(change: JobTransition, hooks: Hooks) -> None:
    """Log what was done, and tell the hooks."""
    job, before, after, stands_in = change.job, change.before, change.after, change.queue
    record = job.claim.record
    if (waiting := change.waiting) is not None:
        hooks.fire(lambda hook: hook.after_decline(job.id, waiting))
    if change.removes and before is not None:
        about(record, change.stood_in, before, action=REMOVAL).info("{} removed", job.id)
        hooks.fire(lambda hook: hook.after_removal(job.id, before))
    if before is None or stands_in is None:
        return
    if after is None:  # what is buried keeps a payload of which nobody makes sense, but for its record
        if stands_in is Queue.DEAD:
            about(record, stands_in, before.evolve(status=Status.DEAD)).info(
                "{} {} -> {}", job.id, change.stood_in, stands_in
            )
        return
    words = "{} {} -> {} {}{}"
    about(record, stands_in, after).info(
        words, job.id, change.stood_in, stands_in, after.status, _reason(after)
    )
    if before.status in _UNDER_WAY and stands_in in _OUTCOMES:
        hooks.fire(lambda hook: hook.after_outcome(job.id, after))
    hooks.fire(lambda hook: hook.after_transition(job.id, before, after, stands_in))


def _reason(state: JobState) -> str:
    # One line of the log for one event, whatever the user's text holds.
    words = state.warning if state.warning is not None else (state.error.message if state.error else "")
    return ": " + " ".join(words.split())[:_MAX_LOGGED_CHARACTERS] if words else ""
