"""`orchestrator job wait`."""

from typing import Annotated

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.documents import print_json
from orchestrator.cli.follow import wait_for_end
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose, parse_seconds_of
from orchestrator.cli.output import exit_as


def wait(
    job_id: JobId,
    timeout: Annotated[str | None, typer.Option(help="Exit with 6 after this time: 30s, 10m.")] = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Wait for the end of a job; exit 0 on SUCCESS, 1 on another status, 6 on a timeout.

    Shows on stderr what the job does or waits for. Ctrl-C ends the wait alone. A lost connection to ZooKeeper
    is shown, and ends the wait after ten minutes.

    Example: orchestrator job wait flights-1 --timeout 10m
    """
    seconds = parse_seconds_of("--timeout", timeout)
    with connected() as (client, _):
        job = wait_for_end(client, job_id, quiet=quiet, timeout=seconds)
    if output is not OutputFormat.TABLE:
        print_json(job.model_dump(mode="json"), output)
    exit_as(job, quiet=quiet)
