"""The commands of `orchestrator job checkpoint`."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from orchestrator.cli.acting import confirm
from orchestrator.cli.connect import connected
from orchestrator.cli.exits import Exit
from orchestrator.cli.job.checkpoint.places import Place, places_of
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import show_rows, stderr_console
from orchestrator.model.errors import CheckpointNotFound
from orchestrator.model.times import local_time
from queues import check_id
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.checkpoints.listing import FoundCheckpoint

_COLUMNS = {
    "name": "name",
    "target": "target",
    "batches": "batches",
    "when": "changed",
    "short": "fingerprint",
    "url": "url",
    "error": "error",
}
_SHORT = 12  # characters of a fingerprint in a table


def list_(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Only those of jobs with this name.")
    ] = None,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """List the checkpoints of jobs that read streams, with their finished batches.

    The folders are those of the settings of this host, and those that jobs in ZooKeeper have used. A local
    Spark reads folders of other file systems. Exits with 1 if a folder cannot be read.

    Example: orchestrator job checkpoint list sales -o json
    """
    if name is not None:
        check_id(name)
    found, is_whole = _found(name or "", quiet=quiet)
    rows = [_row(each, output) for _, each in found]
    show_rows(rows, _COLUMNS, output, none="" if quiet or not is_whole else "there are no checkpoints")
    if not is_whole:
        raise typer.Exit(Exit.FAILED)


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the job.")],
    target: Annotated[
        str | None, typer.Option("--target", help="Only that of this target, as `list` shows it.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Remove checkpoints of a job; its next run reads all data again.

    The rows that the job wrote stay. While a job of this name runs, nothing is removed, and the exit code is
    5. No job of this name starts before the removal ends.

    Example: orchestrator job checkpoint remove sales --target sold --yes
    """
    check_id(name)
    found, is_whole = _found(name, quiet=quiet)
    chosen = [
        (place, each) for place, each in found if target is None or each.target.lower() == target.lower()
    ]
    if not chosen:
        raise CheckpointNotFound(name, target, did_you_mean(target or "", [each.target for _, each in found]))
    what = ", ".join(f"'{each.url}'" for _, each in chosen)
    confirm(f"Remove {what}? The next run of {name} reads all data again.", yes=yes)
    with connected() as (client, _), client.without_runs_of(name):
        for place, each in chosen:
            if error := place.remove(each.url):
                is_whole = False
                stderr_console().print(f"error: {error}", markup=False)
            elif not quiet:
                stderr_console().print(f"{each.url} is removed", markup=False)
    if not is_whole:
        raise typer.Exit(Exit.FAILED)


def _found(name: str, *, quiet: bool) -> tuple[list[tuple[Place, FoundCheckpoint]], bool]:
    """The checkpoints, and whether all folders were read."""
    with connected() as (client, settings):
        jobs = client.list(names=[name] if name else ())
        places = places_of(settings, [job.checkpoint for job in jobs if job.checkpoint], quiet=quiet)
    found, is_whole = list[tuple[Place, FoundCheckpoint]](), True
    for place in places:
        try:
            found += [(place, each) for each in place.checkpoints(name)]
        except SparkRunnerError as error:
            is_whole = False
            stderr_console().print(f"error: {place.url}: {error}", markup=False)
    return sorted(found, key=lambda each: (each[1].name, each[1].target, each[1].url)), is_whole


def _row(found: FoundCheckpoint, output: OutputFormat) -> dict[str, Any]:
    at = None if found.changed is None else datetime.fromtimestamp(found.changed, UTC).isoformat()
    row = found.to_json() | {"changed": at, "error": found.error or None}
    if output is not OutputFormat.TABLE:
        return row
    return row | {"when": local_time(at) if at else "", "short": found.fingerprint[:_SHORT]}
