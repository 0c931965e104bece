"""`orchestrator schedule run` and `backfill`: runs that an operator asks for."""

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.documents import print_json
from orchestrator.cli.follow import wait_for_end
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import exit_as, show_rows, stderr_console
from orchestrator.cli.schedule.commands import Name
from orchestrator.client.client import Client
from orchestrator.model.errors import DefinitionError
from orchestrator.schedules.schedules import BackfillRun
from orchestrator.schedules.view import ScheduleView
from queues import Error, QueueFull
from spark_runner.protocol.text import shortened

_MAX_PARALLEL = 10_000  # as `concurrency`
_PROGRESS_SECONDS = 3.0  # from one line of progress to the next
_COLUMNS = {"fire_time_here": "fire time", "id": "run", "what": "what"}
_FORMS = "2026-11-01, 2026-11-01T06:00 or 2026-11-01T06:00:00Z"


def run(
    name: Name,
    wait_: Annotated[bool, typer.Option("--wait", help="Wait for the end; exit 1 unless SUCCESS.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Enqueue one run of a schedule now, and print its id; its fire times stay as they are.

    It is enqueued also while the schedule is paused or another run has not ended; `concurrency` applies.

    Example: orchestrator schedule run nightly --wait
    """
    with connected(start_own=False) as (client, _):
        before = client.schedules.get(name)
        job = client.schedules.run(name)
        if before.running and not quiet:
            _say(f"{before.last_run} has not ended: both may run at once, as far as concurrency allows")
        if output is OutputFormat.TABLE:
            typer.echo(job.id)
        if wait_:
            job = wait_for_end(client, job.id, quiet=bool(quiet))
    if output is not OutputFormat.TABLE:
        print_json(job.model_dump(mode="json"), output)
    if wait_:
        exit_as(job, quiet=quiet)


def backfill(
    name: Name,
    start: Annotated[
        str, typer.Option("--from", metavar="TIME", help="The first time, in the schedule's zone.")
    ],
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="The time before which it ends; default: now.")
    ] = None,
    is_dry: Annotated[
        bool, typer.Option("--dry-run", help="List the runs and what would happen; enqueue nothing.")
    ] = False,
    parallel: Annotated[
        int | None,
        typer.Option(
            "--parallel",
            metavar="N",
            min=1,
            max=_MAX_PARALLEL,
            help="Run at most N of them at once; kept after the command has ended.",
        ),
    ] = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Enqueue the runs of past fire times that have no job, oldest first.

    A fire time whose job still exists is left out, so the command can be repeated. One whose job was removed
    after its retention runs again. A time without an offset is in the time zone of the schedule.

    Example: orchestrator schedule backfill nightly --from 2026-11-01 --to 2026-11-08 --dry-run
    """
    with connected(start_own=False) as (client, _):
        view, schedules = client.schedules.get(name), client.schedules
        now = client.schedules.now_ms()
        first = _milliseconds("--from", start, view)
        last = now if end is None else _milliseconds("--to", end, view)
        if is_dry:
            runs = schedules.backfill_runs(name, first, last)
        else:
            runs = _fill(client, view, first, last, parallel=parallel or 0, quiet=quiet)
    rows = [_row(run, view.timezone, is_dry=is_dry, output=output) for run in runs]
    show_rows(rows, _COLUMNS, output, ("what",))
    if not quiet:
        _say(_summary(runs, is_dry=is_dry))


def _fill(
    client: Client, view: ScheduleView, start: int, end: int, *, parallel: int, quiet: bool
) -> list[BackfillRun]:
    """Enqueue the runs; however it ends, say how far it has come."""
    zone, done = view.timezone, list[BackfillRun]()
    said_at = time.monotonic()

    def count(run: BackfillRun) -> None:
        nonlocal said_at
        done.append(run)
        if time.monotonic() - said_at >= _PROGRESS_SECONDS and not quiet:
            said_at = time.monotonic()
            _say(f"{len(done):,} fire times, to {_in_zone(run, zone)}")

    try:
        return list(client.schedules.backfill(view.name, start, end, parallel=parallel, on_run=count))
    except (KeyboardInterrupt, Error) as error:
        enqueued = sum(run.enqueued for run in done)
        if done:
            remedy = "when the pool has room, repeat" if isinstance(error, QueueFull) else "repeat"
            words = f"{enqueued:,} runs are enqueued, to {_in_zone(done[-1], zone)}; {remedy} the command"
            _say(f"{words} to continue: it enqueues no fire time twice")
        raise


def _in_zone(run: BackfillRun, zone: str) -> str:
    """The fire time as `--from` and `--to` are read: in the time zone of the schedule."""
    return datetime.fromisoformat(run.fire_time).astimezone(ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M:%S %Z")


def _row(run: BackfillRun, zone: str, *, is_dry: bool, output: OutputFormat) -> dict[str, object]:
    if run.enqueued:
        what = "enqueued"
    elif run.status is None:
        what = "would be enqueued"
    else:
        what = f"exists: {run.status}"
    if output is OutputFormat.TABLE:
        return {"fire_time_here": _in_zone(run, zone), "id": run.id, "what": what}
    action = "exists" if run.status is not None and not run.enqueued else "enqueue"
    return {
        "id": run.id,
        "fire_time": run.fire_time,
        "status": run.status,
        "action": action,
        "dry_run": is_dry,
    }


def _summary(runs: Sequence[BackfillRun], *, is_dry: bool) -> str:
    new = sum(run.enqueued or run.status is None for run in runs)
    verb = "would be enqueued" if is_dry else "enqueued"
    exist = len(runs) - new
    return f"{new:,} runs {verb}" + (f", {exist:,} exist already" if exist else "")


def _milliseconds(option: str, text: str, view: ScheduleView) -> int:
    """A time of the command line in epoch milliseconds; raises DefinitionError."""
    try:
        found = datetime.fromisoformat(text.strip())
        if found.tzinfo is None:
            found = found.replace(tzinfo=ZoneInfo(view.timezone or "UTC"))
        return round(found.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise DefinitionError(
            f"{option}: {shortened(text, 100)!r} is not a time; write it as {_FORMS}"
        ) from error


def _say(words: str) -> None:
    stderr_console().print(words, markup=False)
