"""`orchestrator job kill`, `retry` and `remove`: operations on existing jobs."""

from typing import Annotated

import typer

from orchestrator.cli.acting import act_on_each, confirm
from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from queues import check_id

JobIds = Annotated[list[str], typer.Argument(metavar="ID", help="The ids of the jobs.")]


def kill(
    job_ids: JobIds,
    graceful: Annotated[
        bool,
        typer.Option("--graceful", help="Let streaming queries end their current micro-batch first."),
    ] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Request the stop of jobs in any queue; wait for their end with `job wait`.

    With --graceful, a running job ends as SUCCESS after the current micro-batch of its queries, however long
    that takes; a later `job kill` ends it at once. Jobs that read no stream are refused with exit code 5.

    Example: orchestrator job kill flights-1 flights-2
    """
    words = "asked to end {} after its current micro-batch" if graceful else "asked to stop {}"
    with connected(start_own=False) as (client, _):
        act_on_each(
            job_ids,
            lambda job_id: client.kill(job_id, graceful=graceful),
            lambda job_id, _: words.format(job_id),
            output,
            quiet=quiet,
        )


def retry(
    job_ids: JobIds,
    force: Annotated[bool, typer.Option("--force", help="Also retry jobs that ended as SUCCESS.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Run ended or dead jobs again in a new attempt, with all their retries.

    A demoted job returns to its pool. A job that has not ended is refused with exit code 5.

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
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Remove jobs from ZooKeeper, with their definitions, attempts and results.

    A running job is refused with exit code 5; stop it first with `job kill`. Logs and other files of its runs
    stay on the hosts where it ran. Only jobs removed at the end of their retention are archived, and only
    their files are removed with them.

    Example: orchestrator job remove flights-1 --yes
    """
    named = job_ids[0] if len(job_ids) == 1 else f"{len(job_ids)} jobs"
    confirm(f"Remove {named} permanently?", yes=yes)

    with connected(start_own=False) as (client, _):

        def act(job_id: str) -> None:
            client.remove(check_id(job_id))

        act_on_each(job_ids, act, lambda job_id, _: f"{job_id} is removed", output, quiet=quiet)
