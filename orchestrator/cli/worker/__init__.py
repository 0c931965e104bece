"""`orchestrator worker`: run a worker, list workers, and drain one."""

from typing import Annotated

import typer

from orchestrator.cli.lazy import Command, enable_plugins, lazy_app
from orchestrator.cli.options import MetricsAddress, Quiet, Slots, Verbose

app = lazy_app(
    [
        Command(
            "list",
            "orchestrator.cli.worker.listing:list_",
            "List the workers with their pools, their slots and their state.",
        ),
        Command(
            "drain",
            "orchestrator.cli.worker.drain:drain",
            "Let a worker take no more jobs, and end after its drivers.",
        ),
    ],
    no_args_is_help=False,
)


@app.callback(invoke_without_command=True)
def worker(
    context: typer.Context,
    pool: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[=WEIGHT]", help="Serve only these pools; default: all pools."),
    ] = None,
    slots: Slots = None,
    metrics_address: MetricsAddress = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Run the jobs of the configured ZooKeeper until TERM or Ctrl-C.

    The signal stops the worker within 10 s: it starts no new job, running drivers continue, and the next
    worker on this host adopts them. A second signal ends the process at once. `worker drain` lets the drivers
    end first.

    Example: orchestrator worker --slots 4 --pool default=3 --pool reports=1
    """
    if context.invoked_subcommand is None:
        enable_plugins()  # drivers and other child processes may use plugins of pydantic
        from orchestrator.cli.serve import worker as run  # noqa: PLC0415 - slow to load, not for the others

        run(pool, slots, metrics_address, verbose, quiet)
