"""fail: once more after a delay, or finish as ERROR_FAIL."""

from orchestrator.handlers.actions import Action, Finish, Move
from orchestrator.handlers.job import HeldJob
from orchestrator.states import Status


def handle(job: HeldJob) -> Action:
    """Retry while attempts are left, the error is of a kind that is retried, and nobody asked to stop."""
    state, retry = job.state, job.definition.retry
    failures = state.failures + 1
    error_class = state.error.error_class if state.error is not None else "lost"
    if failures >= retry.attempts or error_class not in retry.on:
        return Finish(Status.ERROR_FAIL, changes={"failures": failures})
    if job.is_stopped():
        return Move(Status.CANCEL, changes={"failures": failures})
    return Move(Status.ACCEPT, changes={"failures": failures}, delay=retry.delay_after(failures))
