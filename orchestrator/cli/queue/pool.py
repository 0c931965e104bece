"""`orchestrator queue pool`: list pools, and remove unused ones."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from orchestrator.admin.pools import PoolLoad
from orchestrator.cli.acting import exit_with
from orchestrator.cli.connect import connected
from orchestrator.cli.exits import Exit, explain_error
from orchestrator.cli.lazy import Command, lazy_app
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Verbosity, Watch
from orchestrator.cli.output import show_rows, stderr_console
from orchestrator.cli.page import repeat
from orchestrator.model.errors import OrchestratorError
from queues import QueueError

app = lazy_app(
    [
        Command(
            "list",
            "orchestrator.cli.queue.pool:list_",
            "List the pools with their jobs, workers and limits.",
        ),
        Command(
            "remove",
            "orchestrator.cli.queue.pool:remove",
            "Remove pools without jobs that no worker serves by name.",
        ),
    ],
    help="List pools, and remove unused ones.",
)
_COLUMNS = (
    "pool",
    "jobs",
    "workers",
    "weight",
    "bound",
    "cap",
    "low_share",
    "high_water",
    "water_line",
    "paused",
)


def list_(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """List the pools with their jobs, workers and limits.

    `jobs` counts the jobs of all queues, with the ended jobs in finish. `workers` counts the workers that
    serve all pools and those that serve the pool by name. `water line` is shown while it is at `high water`
    in a running job, so that no further job starts.

    Example: orchestrator queue pool list
    """
    with connected() as (client, _):

        def show_once() -> None:
            rows = [_row(load) for load in client.pool_loads()]
            if output is OutputFormat.TABLE:
                rows = [{**row, **_shown(row)} for row in rows]
            columns = {name: name.replace("_", " ") for name in _COLUMNS}
            show_rows(rows, columns, output, none="" if quiet or watch else "there are no pools")

        repeat(show_once, watch)


def _row(load: PoolLoad) -> dict[str, Any]:
    counts = {"pool": load.pool, "jobs": load.jobs, "workers": load.workers}
    return {**counts, **asdict(load.limits), "water_line": load.water_line}


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    line = row["water_line"]
    return {
        "paused": "paused" if row["paused"] else "",
        "high_water": row["high_water"] or "",
        "water_line": "" if line is None else f"{line:.2f}",
    }


def remove(
    pools: Annotated[list[str], typer.Argument(metavar="POOL", help="The pools, each with its low lane.")],
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Remove pools without jobs that no worker serves by name, each with its low lane and limits.

    Other pools are refused with exit code 5. A job that is submitted at the same time is not lost: the pool
    stays, or is created again.

    Example: orchestrator queue pool remove nightly
    """
    codes = set[Exit]()
    with connected(start_own=False) as (client, _):
        for pool in pools:
            try:
                client.remove_pool(pool)
            except (QueueError, OrchestratorError) as error:
                codes.add(explain_error(error, verbose=Verbosity.verbose))
                continue
            if not quiet:
                stderr_console().print(f"{pool} is removed", markup=False)
    exit_with(codes)
