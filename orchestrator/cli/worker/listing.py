"""`orchestrator worker list`."""

from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import show_page, stdout_console
from orchestrator.cli.worker.rows import workers_table


def list_(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """List the workers with their pools, their slots and their state.

    `adopted` counts the running drivers that another worker has started. JSON output has more: host, process,
    start, and why a worker takes no job.

    Example: orchestrator worker list -w 2
    """
    with connected() as (client, _):
        show_page(
            client.workers,
            lambda workers: stdout_console().print(workers_table(workers) if workers else "no workers"),
            lambda workers: [worker.model_dump(mode="json") for worker in workers],
            output,
            watch,
        )
