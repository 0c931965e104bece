"""`orchestrator job wait`, and the end of a job as a message and an exit code."""

from typing import Annotated

import typer

from orchestrator.cli.connect import connected_jobs
from orchestrator.cli.documents import print_json
from orchestrator.cli.exits import Exit
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose, parse_seconds_of
from orchestrator.cli.output import stderr_console
from orchestrator.model.job import JobView
from orchestrator.model.states import Status


def exit_as(job: JobView, *, quiet: bool) -> None:
    """Report the final status of a job, and exit with 1 unless it is SUCCESS."""
    if not quiet:
        error = f": {job.error.message}" if job.error is not None and job.status is not Status.SUCCESS else ""
        stderr_console().print(f"{job.id}: {job.status}{error}", markup=False)
    if job.status is not Status.SUCCESS:
        raise typer.Exit(Exit.FAILED)


def wait(
    job_id: JobId,
    timeout: Annotated[str | None, typer.Option(help="Exit with 6 after this time: 30s, 10m.")] = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Wait for the end of a job; exit 0 on SUCCESS, 1 on another status, 6 on a timeout.

    Example: orchestrator job wait flights-1 --timeout 10m
    """
    seconds = parse_seconds_of("--timeout", timeout)
    with connected_jobs() as jobs:
        job = jobs.wait(job_id, timeout=seconds)
    if output is not OutputFormat.TABLE:
        print_json(job.model_dump(mode="json"), output)
    exit_as(job, quiet=quiet)
