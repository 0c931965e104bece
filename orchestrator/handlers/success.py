"""success: the job has succeeded."""

from orchestrator.handlers.actions import Action
from orchestrator.handlers.conclude import conclude
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.record_run import record_run
from orchestrator.states import Status


def handle(job: JobContext) -> Action:
    """Record the run, call the callback, and move the job to finish."""
    record_run(job)
    return conclude(job, Status.SUCCESS)
