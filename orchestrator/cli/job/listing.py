"""`orchestrator job list`."""

import gc
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected_views
from orchestrator.cli.grid import cut
from orchestrator.cli.options import (
    Output,
    OutputFormat,
    Quiet,
    Verbose,
    Watch,
    parse_labels,
    parse_since,
    parse_statuses,
)
from orchestrator.cli.output import elapsed, show_rows, shown_status
from orchestrator.cli.page import repeat
from orchestrator.client.progress import short_progress
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue
from orchestrator.model.times import ago, moment

_COLUMNS = {
    "id": "id",
    "name": "name",
    "pool": "pool",
    "queue": "queue",
    "status_shown": "status",
    "attempt": "attempt",
    "created_shown": "created",
    "took": "took",
    "progress": "progress",
    "callback_shown": "callback",
    "worker": "worker",
    "error": "error",
}
_DROP = ("callback", "worker", "queue", "attempt", "pool", "created", "name", "error", "took", "progress")
_MAX_ERROR_CHARACTERS = 60  # on a terminal
# The objects of a list live until it is printed: with Python's default of 700, collections that find nothing
# take a third of the time of a list of ten thousand jobs.
_GC_THRESHOLD = 100_000


def list_(
    pool: Annotated[list[str] | None, typer.Option(help="Only jobs in this pool.")] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="Only jobs with this name, or of this pattern: 'daily*'.")
    ] = None,
    status: Annotated[
        list[str] | None, typer.Option(help="Only jobs with this status, or one of these: RUNNING,ACCEPT.")
    ] = None,
    queue: Annotated[list[Queue] | None, typer.Option(help="Only jobs in this queue.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Only jobs with this label; several must all match."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only jobs submitted since then: 10m, 2h, or 2026-11-22T10:00."),
    ] = None,
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
    reason, except with --name, --status or --label. With --archived, the source is Elasticsearch (`logs.url`)
    or the spools of this host, not ZooKeeper. `took` of a running job is its time so far.

    Example: orchestrator job list --status ERROR_FAIL,KILL --since 2h --limit 20 -o json
    """
    gc.set_threshold(_GC_THRESHOLD)
    labels, start = parse_labels(label), parse_since(since)
    filters: dict[str, Any] = {
        "pools": pool or (),
        "names": name or (),
        "statuses": parse_statuses(status),
        "queues": queue or (),
    }
    none = "no job matches" if any((*filters.values(), labels, start)) else "there are no jobs"
    if archived:
        from orchestrator.cli.job.archived import archived_jobs  # noqa: PLC0415 - seldom used, and slow to load

        found = archived_jobs(**filters, since=start, quiet=quiet)
        jobs = [job for job in found if labels.items() <= job.labels.items() and _is_since(job, start)]
        rows = [list_row(job, output) for job in jobs[:limit]]
        show_rows(rows, _COLUMNS, output, _DROP, none="" if quiet else none)
        return
    with connected_views() as views:

        def show() -> None:
            jobs = views.list(**filters, labels=labels, since=start, limit=limit)
            progress = views.progress_of(jobs) if output is OutputFormat.TABLE else {}
            rows = [list_row(job, output, progress.get(job.id)) for job in jobs]
            show_rows(rows, _COLUMNS, output, _DROP, none="" if quiet or watch else none)

        repeat(show, watch)


def _is_since(job: JobView, start: datetime | None) -> bool:
    created = moment(job.created)
    return start is None or (created is not None and created >= start)


def list_row(job: JobView, output: OutputFormat, progress: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A row of the list; the job may be an unreadable one."""
    if output is not OutputFormat.TABLE:
        return job.model_dump(mode="json")
    return {
        "id": job.id,
        "name": job.name,
        "pool": job.pool,
        "queue": job.queue,
        "status_shown": shown_status(job.status),
        "attempt": job.attempt,
        "created_shown": ago(job.created),
        "took": _took(job),
        "progress": short_progress(progress),
        "callback_shown": "given up" if job.undelivered else "",
        "worker": job.worker,
        "error": _error(job),
    }


def _error(job: JobView) -> str:
    """The first line of the error, complete in a pipe; a terminal gets its beginning."""
    if job.error is None:
        return ""
    lines = (" ".join(line.split()) for line in (*job.error.message.splitlines(), job.error.type))
    first = next(filter(None, lines), "")
    return cut(first, _MAX_ERROR_CHARACTERS) if sys.stdout.isatty() else first


def _took(job: JobView) -> str:
    if job.queue is Queue.RUNNING:
        return elapsed(job.times.get(Queue.RUNNING), datetime.now(UTC).isoformat())
    return elapsed(job.started, job.ended)
