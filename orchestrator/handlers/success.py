"""success: the job did what it was for."""

from orchestrator.handlers.actions import Action
from orchestrator.handlers.conclude import conclude
from orchestrator.handlers.job_context import HeldJob
from orchestrator.handlers.record_run import remember
from orchestrator.states import Status


def handle(job: HeldJob) -> Action:
    """Note what it took, tell it, and bring it to finish."""
    remember(job)
    return conclude(job, Status.SUCCESS)
