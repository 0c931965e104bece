"""`orchestrator job kill`, `retry` and `remove`: what is done to jobs that are there."""

from typing import Annotated

import typer

from orchestrator.cli.acting import act_on_each, confirm
from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from queues import check_id

JobIds = Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of the jobs.")]


def kill(
    job_ids: JobIds, output: Output = OutputFormat.TABLE, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """Request the end of jobs in any queue; `job wait` returns when one has ended.

    Example: orchestrator job kill flights-1 flights-2
    """
    with connected(start_own=False) as (client, _):
        act_on_each(job_ids, client.kill, lambda job_id, _: f"asked to stop {job_id}", output, quiet=quiet)


def retry(
    job_ids: JobIds,
    force: Annotated[bool, typer.Option("--force", help="Also jobs that ended as SUCCESS.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Run jobs again that have ended or are dead, with all their tries, in a new attempt.

    A demoted job goes back to its pool. What has not ended is refused with exit code 5.

    Example: orchestrator job retry flights-1
    """
    with connected(start_own=False) as (client, _):
        act_on_each(
            job_ids,
            lambda job_id: client.retry(job_id, force=force),
            lambda job_id, view: f"{job_id} is back in accept" + (f" of pool {view.pool}" if view else ""),
            output,
            quiet=quiet,
        )


def remove(
    job_ids: JobIds,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Remove jobs with all that ZooKeeper has of them: definition, attempts, result.

    One that runs is refused with exit code 5: `job kill` first. Logs and other files of its runs stay on the
    hosts where it ran; only jobs that go at the end of their retention take them along, and only those are
    archived.

    Example: orchestrator job remove flights-1 --yes
    """
    named = job_ids[0] if len(job_ids) == 1 else f"{len(job_ids)} jobs"
    confirm(f"Remove {named} permanently?", yes=yes)

    with connected(start_own=False) as (client, _):

        def act(job_id: str) -> None:
            client.remove(check_id(job_id))

        act_on_each(job_ids, act, lambda job_id, _: f"{job_id} is removed", output, quiet=quiet)
