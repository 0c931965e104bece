"""The commands of `orchestrator queue`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from orchestrator.admin.queue_views import QueueLoad
from orchestrator.cli.acting import exit_with, outcome
from orchestrator.cli.connect import connected
from orchestrator.cli.documents import print_json
from orchestrator.cli.exits import Exit, explain_error
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose, Verbosity, Watch
from orchestrator.cli.output import show_rows, stderr_console, stdout_console
from orchestrator.cli.page import repeat
from orchestrator.model.errors import DefinitionError
from orchestrator.model.fields import parse_seconds
from orchestrator.model.job_view import JobView
from orchestrator.model.states import Queue
from orchestrator.model.times import local_time

PoolName = Annotated[str, typer.Argument(metavar="POOL", help="The pool.")]
_COLUMNS = {
    "id": "id",
    "pool": "pool",
    "status": "status",
    "due_here": "due",
    "held_by": "held by",
    "reason": "reason",
}
_DROP = ("pool", "held by", "due", "status")
_DROP_POOLS = ("weight", "cap", "success", "kill", "fail")


def list_(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """List the pools with the number of jobs in each queue, and the limits of each pool.

    `weight` is the number of turns of the pool for each turn of a pool with weight 1. `cap` is the maximum
    number of its jobs that run at once. JSON output has a document for each queue of each pool.

    Example: orchestrator queue list -w 2
    """
    with connected() as (client, _):

        def show_once() -> None:
            loads = client.queues()
            if output is OutputFormat.TABLE:
                columns = {name: name for name in ("pool", *Queue, "weight", "cap", "paused")}
                none = "" if quiet or watch else "there are no pools"
                show_rows(_pools(loads), columns, output, _DROP_POOLS, none=none)
            else:
                show_rows([asdict(load) for load in loads], {}, output)

        repeat(show_once, watch)


def _pools(loads: Sequence[QueueLoad]) -> list[dict[str, Any]]:
    rows = dict[str, dict[str, Any]]()
    for load in loads:
        limits = {
            "weight": "" if load.weight is None else load.weight,
            "cap": load.cap or "",
            "paused": "paused" if load.paused else "",
        }
        rows.setdefault(load.pool, {"pool": load.pool, **limits})[load.queue] = load.jobs
    return list(rows.values())


def show(
    queue: Annotated[Queue, typer.Argument(metavar="QUEUE", help="The queue.")],
    pool: Annotated[str | None, typer.Option(help="Only this pool.")] = None,
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show the jobs of a queue in the order of their due times; then the number of jobs per wait reason.

    Example: orchestrator queue show dead -o json
    """
    with connected() as (client, _):

        def show_once() -> None:
            rows = client.jobs_in_queue(queue, pool)
            if output is not OutputFormat.TABLE:
                show_rows(rows, {}, output)
                return
            waiting = [row["waiting"] for row in rows if row["waiting"] is not None]
            none = "" if quiet or watch else f"there is no job in {queue}"
            show_rows([_table_row(row) for row in rows], _COLUMNS, output, _DROP, none=none)
            if waiting:
                stdout_console().print()
                show_rows(_sums(waiting), {"reason": "wait for", "jobs": "jobs", "message": "as one"}, output)

        repeat(show_once, watch)


def _table_row(row: dict[str, Any]) -> dict[str, Any]:
    reason = row["reason"] if row["waiting"] is None else row["waiting"]["message"]
    return {**row, "due_here": local_time(row["due"]), "reason": reason}


def _sums(waiting: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The number of jobs per wait reason, most frequent first, with the message of the first job."""
    first = {wait["reason"]: wait["message"] for wait in reversed(waiting)}
    counts = Counter(wait["reason"] for wait in waiting)
    return [
        {"reason": reason, "jobs": jobs, "message": first[reason]} for reason, jobs in counts.most_common()
    ]


def pause(pool: PoolName, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Start no job of a pool and its low lane until it is resumed; running jobs continue.

    Example: orchestrator queue pause default
    """
    with connected(start_own=False) as (client, _):
        client.pause(pool)
    _say(f"{pool} is paused", quiet=quiet)


def resume(pool: PoolName, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Start jobs of a paused pool again.

    Example: orchestrator queue resume default
    """
    with connected(start_own=False) as (client, _):
        client.resume(pool)
    _say(f"{pool} is resumed", quiet=quiet)


def requeue(
    job_id: JobId,
    delay: Annotated[str, typer.Option(help="The time from now: 0s, 30s, 10m.")],
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Set the due time of a job in its queue: sooner, later, or now.

    A job in finish is archived and removed at its due time. A running job is refused with exit code 5.

    Example: orchestrator queue requeue flights-1 --delay 0s
    """
    try:
        seconds = parse_seconds(delay)
    except ValueError as error:
        raise DefinitionError(f"--delay: {error}") from error
    with connected(start_own=False) as (client, _):
        job = client.requeue(job_id, delay=seconds)
    _show(job, output)
    _say(f"{job_id} is due in {job.queue} after {delay}", quiet=quiet)


def move(
    job_id: JobId,
    queue: Annotated[Queue, typer.Argument(metavar="QUEUE", help="The target queue.")],
    force: Annotated[bool, typer.Option("--force", help="Move the job even if a worker holds it.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Move a job to another queue, and set the status that matches the queue and the job.

    These jobs are refused with exit code 5: a job with an open attempt, except to running and kill; a job
    that a worker holds, except with --force; a job that has ended (see `job retry`); a job in dead (see
    `queue replay`).

    Example: orchestrator queue move flights-1 finish
    """
    with connected(start_own=False) as (client, _):
        job = client.move(job_id, queue, force=force)
    _show(job, output)
    _say(f"{job_id} is {job.status} in {job.queue}", quiet=quiet)


def replay(
    job_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="The ids of the jobs; default: all in dead.")
    ] = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Move jobs from dead back to their previous queues, and reset their error counts.

    A job that cannot be moved stays in dead, and the reason is reported.

    Example: orchestrator queue replay flights-1
    """
    rows, codes = list[dict[str, Any]](), set[Exit]()
    with connected(start_own=False) as (client, _):
        for done in client.replay(job_ids or None):
            if done.error is not None:
                codes.add(explain_error(done.error, verbose=Verbosity.verbose))
            else:
                _say(f"{done.id} is back in {done.queue}", quiet=quiet)
            rows.append({**outcome(done.id, None, done.error), "queue": done.queue})
    if output is not OutputFormat.TABLE:
        show_rows(rows, {}, output)
    elif not rows:
        _say("there is no job in dead", quiet=quiet)
    exit_with(codes)


def _show(job: JobView, output: OutputFormat) -> None:
    if output is not OutputFormat.TABLE:
        print_json(job.model_dump(mode="json"), output)


def _say(words: str, *, quiet: bool) -> None:
    if not quiet:
        stderr_console().print(words, markup=False)
