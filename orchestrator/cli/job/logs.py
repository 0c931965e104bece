"""`orchestrator job logs`."""

from typing import Annotated

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.job.log_files import LogStream, print_logs
from orchestrator.cli.options import JobId, Quiet, Verbose
from orchestrator.wiring import build_runners


def logs(
    job_id: JobId,
    attempt: Annotated[int | None, typer.Option(min=1, help="Which attempt; default: the last.")] = None,
    stream: Annotated[list[LogStream] | None, typer.Option(help="Only these; default: all.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Print what a job and Spark said: stdout, stderr and Spark's own log of an attempt.

    Example: orchestrator job logs flights-1 --stream stdout --follow
    """
    with connected() as (client, settings):
        print_logs(
            client, build_runners(settings), job_id, attempt, tuple(stream or LogStream), follow=follow
        )
