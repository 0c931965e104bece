"""`orchestrator schedule`: list, show, pause, resume, remove; `job submit` registers."""

import sys
from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.exits import Exit
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import (
    local_time,
    print_json,
    repeat,
    show_rows,
    stderr_console,
    stdout_console,
    table,
)
from orchestrator.errors import DefinitionError
from orchestrator.models.definition import Definition
from orchestrator.schedules.entry import ScheduleView
from orchestrator.schedules.runs import check_registration

app = typer.Typer(no_args_is_help=True, help="Look at periodic jobs, pause and remove them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name in the definition.")]
_COLUMNS = {
    "name": "name",
    "when": "when",
    "timezone": "timezone",
    "next_here": "next",
    "last_here": "last",
    "paused": "paused",
    "overlap": "overlap",
}


def register(
    definition: Definition, output: OutputFormat, *, once_only: dict[str, object], quiet: bool
) -> None:
    """Register a definition with a schedule and tell when it runs first.

    `once_only`: options of `job submit` for a single run; raises DefinitionError when one was given.
    """
    for option, value in once_only.items():
        if value:
            raise DefinitionError(
                f"{option} is for a single run, and {definition.name!r} has a schedule: it is registered by "
                "its name, and the ids of its runs are made of their fire times"
            )
    check_registration(definition)
    with connected(start_own=False) as (client, _):
        view = client.schedules.put(definition)
    if output is OutputFormat.TABLE:
        typer.echo(f"{view.name} {view.next or 'paused'}")
    else:
        print_json(view.model_dump(mode="json"), output)
    if view.paused and not quiet:
        stderr_console().print(
            f"{view.name} is paused; `orchestrator schedule resume {view.name}` lets it run", markup=False
        )


@app.command(name="list")
def list_(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """List all schedules with the next and the last fire time of each.

    Example: orchestrator schedule list -o json
    """
    with connected() as (client, _):

        def show_once() -> None:
            show_rows([_row(view, output) for view in client.schedules.list()], _COLUMNS, output)

        repeat(show_once, watch)


def _row(view: ScheduleView, output: OutputFormat) -> dict[str, Any]:
    row = view.model_dump(mode="json", exclude={"definition"})
    if output is not OutputFormat.TABLE:
        return row
    paused = "yes" if view.paused else "no"
    return {**row, "paused": paused, "next_here": local_time(view.next), "last_here": local_time(view.last)}


@app.command()
def show(
    name: Name,
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show one schedule: its times, the last run, and the fire times that had none, with the reason."""
    with connected() as (client, _):

        def show_once() -> None:
            view = client.schedules.get(name)
            if output is OutputFormat.TABLE:
                _show_view(view)
            else:
                print_json(view.model_dump(mode="json"), output)

        repeat(show_once, watch)


def _show_view(view: ScheduleView) -> None:
    console = stdout_console()
    facts = {
        "schedule": view.name,
        "when": f"{view.when} ({view.timezone})",
        "next": "paused" if view.paused else local_time(view.next),
        "last run": "" if view.last is None else f"{view.last_run}, {local_time(view.last)}",
        "overlap": view.overlap,
        "catch up": "yes" if view.catch_up else "no",
        "registered": local_time(view.registered),
        "node": view.path,
    }
    for fact, value in facts.items():
        if value:
            console.print(f"{fact + ':':<12}{value}", markup=False, soft_wrap=True)
    if view.skipped:
        rows = [[local_time(item.time), local_time(item.until), item.reason] for item in view.skipped]
        console.print()
        console.print(table(["no run at", "until", "because"], rows))


@app.command()
def pause(name: Name, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Enqueue no further run of a schedule until it is resumed; runs that are enqueued go on."""
    with connected(start_own=False) as (client, _):
        client.schedules.pause(name)
    _say(f"{name} is paused", quiet=quiet)


@app.command()
def resume(name: Name, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Enqueue runs again, from the next fire time on; what was due while it was paused is not made up for."""
    with connected(start_own=False) as (client, _):
        view = client.schedules.resume(name)
    _say(f"{name} runs next at {local_time(view.next)}", quiet=quiet)


@app.command()
def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Forget a schedule; its runs stay."""
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("nobody can be asked here: give --yes to remove it")
        try:
            agreed = typer.confirm(f"remove the schedule {name}?", err=True)
        except typer.Abort:  # Ctrl-C, or the end of what is typed
            raise typer.Exit(Exit.INTERRUPTED) from None
        if not agreed:
            raise typer.Exit(Exit.FAILED)
    with connected(start_own=False) as (client, _):
        client.schedules.remove(name)
    _say(f"{name} is removed", quiet=quiet)


def _say(words: str, *, quiet: bool) -> None:
    if not quiet:
        stderr_console().print(words, markup=False)
