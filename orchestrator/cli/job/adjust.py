"""`orchestrator job adjust`: the limits of pushes and streams while they run."""

from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.options import JobId, Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import show_rows, stderr_console
from orchestrator.model.errors import DefinitionError

Lanes = list[str] | None


def adjust(
    job_id: JobId,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Requests in flight of all tasks.")] = None,
    rate: Annotated[float | None, typer.Option(help="Requests per second of all tasks.")] = None,
    buffer: Annotated[int | None, typer.Option(min=1, help="Rows that wait for the target.")] = None,
    pause_lane: Annotated[Lanes, typer.Option(metavar="LANE", help="Send nothing of a lane.")] = None,
    resume_lane: Annotated[Lanes, typer.Option(metavar="LANE", help="Send it again.")] = None,
    suspend: Annotated[
        bool | None, typer.Option("--suspend/--resume", help="Send nothing, or all again.")
    ] = None,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Send again what is not acknowledged.")
    ] = False,
    batch_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows in a micro-batch of each stream.")
    ] = None,
    batch_seconds: Annotated[
        float | None, typer.Option(help="Time of a micro-batch to tune the rows for.")
    ] = None,
    tune_batches: Annotated[
        bool, typer.Option("--tune-batches", help="Tune the rows, instead of --batch-rows.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Begin the next jobs of this name with these limits.")
    ] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Change the limits of the pushes and streams of a job while it runs.

    Tasks of pushes follow within two seconds, streams between two micro-batches. The limits hold for all
    tasks of each push together, and for each stream, until the end of the job.

    Example: orchestrator job adjust invoices-7 --concurrency 4 --pause-lane returns
    """
    if tune_batches and batch_rows is not None:
        raise DefinitionError("--tune-batches and --batch-rows contradict each other: give one of them")
    given = {
        "concurrency": concurrency,
        "rate": rate,
        "buffer": buffer,
        "is_suspended": suspend,
        "batch_rows": batch_rows,
        "batch_seconds": batch_seconds,
    }
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if tune_batches:
        values |= {"batch_rows": None, "is_tuned": True}
    if not (values or pause_lane or resume_lane or rollback or keep):
        raise DefinitionError("nothing to change: give an option, such as --concurrency")
    with connected(start_own=False) as (client, _):
        made = client.adjust(
            job_id, values, pause=pause_lane or (), resume=resume_lane or (), is_rollback=rollback, keep=keep
        ).document()
        progress = client.progress(client.get(job_id)) or {}
    if not (progress.get("pushes") or progress.get("streams")) and not quiet:
        words = f"{job_id} has no push or stream that runs: the limits hold for those that begin"
        stderr_console().print(words, markup=False)
    row = {"id": job_id, **made}
    if output is OutputFormat.TABLE:
        row["paused"] = ", ".join(made.get("paused", ()))
    show_rows([row], {name: name.removeprefix("is_") for name in row}, output)
