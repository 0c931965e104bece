"""success: the job did what it was for."""

from orchestrator.handlers.actions import Action
from orchestrator.handlers.conclude import conclude
from orchestrator.handlers.job import HeldJob
from orchestrator.states import Status


def handle(job: HeldJob) -> Action:
    """Tell it, and bring it to finish."""
    return conclude(job, Status.SUCCESS)
