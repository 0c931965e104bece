"""success: the job did what it was for."""

from orchestrator.handlers.actions import Action
from orchestrator.handlers.conclude import conclude
from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.record_run import record_run
from orchestrator.states import Status


def handle(job: JobContext) -> Action:
    """Note what it took, tell it, and bring it to finish."""
    record_run(job)
    return conclude(job, Status.SUCCESS)
