"""A job that could not be submitted for a passing reason: back to accept for a while, as often as it may."""

from orchestrator.backoff import jittered
from orchestrator.handlers.actions import Move
from orchestrator.handlers.job_context import JobContext
from orchestrator.models.job import JobError
from orchestrator.states import Status


def later(job: JobContext, error: JobError) -> Move | None:
    """Back to accept until its delay is over, with why it waits; None when no tries are left."""
    retry, failed = job.definition.retry, job.state.submissions + 1
    if failed >= retry.submissions:
        return None
    delay = jittered(retry.delay_after(failed))
    return Move(Status.ACCEPT, changes={"submissions": failed, "error": error}, delay=delay)
