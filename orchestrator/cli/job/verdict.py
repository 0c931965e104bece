"""How a job has ended, as words and as the exit code."""

import typer

from orchestrator.cli.exit_codes import Exit
from orchestrator.cli.output import stderr_console
from orchestrator.models.job import JobView
from orchestrator.states import Status


def exit_as(job: JobView, *, quiet: bool) -> None:
    """Tell how a job has ended, and end the command with 1 unless it was SUCCESS."""
    if not quiet:
        error = f": {job.error.message}" if job.error is not None and job.status is not Status.SUCCESS else ""
        stderr_console().print(f"{job.id}: {job.status}{error}", markup=False)
    if job.status is not Status.SUCCESS:
        raise typer.Exit(Exit.FAILED)
