"""`orchestrator queue`: the seven queues and what stands in them."""

from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import local_time, repeat, show_rows
from orchestrator.states import Queue

app = typer.Typer(no_args_is_help=True, help="Look at the queues.")


@app.command(name="list")
def list_(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """List the queues with the number of jobs in each."""
    with connected() as (client, _):

        def show_once() -> None:
            rows = [{"queue": queue.value, "jobs": client.count(queue)} for queue in Queue]
            show_rows(rows, {"queue": "queue", "jobs": "jobs"}, output)

        repeat(show_once, watch)


@app.command()
def show(
    queue: Annotated[Queue, typer.Argument(metavar="QUEUE", help="Which queue.")],
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show what stands in a queue, in the order in which it is due."""
    with connected() as (client, _):

        def show_once() -> None:
            rows: list[dict[str, Any]] = client.standing(queue)
            for row in rows:
                row["due_here"] = local_time(row["due"])
            columns = {
                "id": "id",
                "status": "status",
                "due_here": "due",
                "held_by": "held by",
                "reason": "reason",
            }
            show_rows(rows, columns, output)

        repeat(show_once, watch)
