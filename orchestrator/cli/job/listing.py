"""`orchestrator job list`."""

from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import elapsed, repeat, show_rows
from orchestrator.model.job import JobView
from orchestrator.model.states import Queue, Status
from orchestrator.model.times import local_time

_COLUMNS = {
    "id": "id",
    "name": "name",
    "pool": "pool",
    "queue": "queue",
    "status": "status",
    "attempt": "attempt",
    "created_here": "created",
    "took": "took",
    "callback_shown": "callback",
    "error": "error",
}
_MAX_ERROR_CHARACTERS = 60


def list_(
    pool: Annotated[list[str] | None, typer.Option(help="Only jobs in this pool.")] = None,
    name: Annotated[list[str] | None, typer.Option(help="Only jobs with this name.")] = None,
    status: Annotated[list[Status] | None, typer.Option(help="Only jobs with this status.")] = None,
    queue: Annotated[list[Queue] | None, typer.Option(help="Only jobs in this queue.")] = None,
    archived: Annotated[
        bool,
        typer.Option("--archived", help="List ended jobs from the logs, also those removed from ZooKeeper."),
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="The maximum number of jobs.")] = None,
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """List the jobs of all pools, newest first.

    Each filter may be given several times. A job whose record cannot be read is listed as DEAD with the
    reason, except with --name or --status. With --archived, the source is Elasticsearch (`logs.url`) or the
    spools of this host, not ZooKeeper.

    Example: orchestrator job list --status ERROR_FAIL --status KILL --limit 20 -o json
    """
    if archived:
        from orchestrator.cli.job.archived import archived_jobs  # noqa: PLC0415 - seldom used, and slow to load

        found = archived_jobs(pools=pool or (), names=name or (), statuses=status or (), queues=queue or ())
        show_rows([list_row(job, output) for job in found[:limit]], _COLUMNS, output)
        return
    with connected() as (client, _):

        def show() -> None:
            jobs = client.list(
                pools=pool or (), names=name or (), statuses=status or (), queues=queue or (), limit=limit
            )
            show_rows([list_row(job, output) for job in jobs], _COLUMNS, output)

        repeat(show, watch)


def list_row(job: JobView, output: OutputFormat) -> dict[str, Any]:
    """A row of the list; the job may be an unreadable one."""
    if output is not OutputFormat.TABLE:
        return job.model_dump(mode="json")
    lines = [] if job.error is None else [*job.error.message.splitlines(), job.error.type]
    message = next((line.strip() for line in lines if line.strip()), "")
    shown = message if len(message) <= _MAX_ERROR_CHARACTERS else message[: _MAX_ERROR_CHARACTERS - 1] + "…"
    return {
        **job.model_dump(mode="json"),
        "attempt": job.attempt,
        "created_here": local_time(job.created),
        "took": elapsed(job.started, job.ended),
        "callback_shown": "given up" if job.undelivered else "",
        "error": shown,
    }
