"""success: the job did what it was for."""

from orchestrator.handlers.actions import Action, Finish
from orchestrator.handlers.job import HeldJob
from orchestrator.states import Status


def handle(_job: HeldJob) -> Action:
    """Bring it to finish."""
    return Finish(Status.SUCCESS)
