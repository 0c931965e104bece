"""The commands of `orchestrator schedule`."""

import sys
from functools import partial
from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.exits import Exit
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import (
    repeat,
    show_page,
    show_rows,
    stderr_console,
    stdout_console,
    table,
)
from orchestrator.model.times import local_time
from orchestrator.schedules.view import ScheduleView

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


def list_(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """List all schedules with their next and last fire times.

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
    if view.error is not None:
        row["when"] = f"cannot be read: {view.error}"
    return {**row, "paused": paused, "next_here": local_time(view.next), "last_here": local_time(view.last)}


def show(
    name: Name,
    output: Output = OutputFormat.TABLE,
    watch: Watch = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show a schedule: its times, its last run, and the skipped fire times with the reasons.

    Example: orchestrator schedule show nightly
    """
    with connected() as (client, _):
        look, document = partial(client.schedules.get, name), partial(ScheduleView.model_dump, mode="json")
        show_page(look, _show_view, document, output, watch)


def _show_view(view: ScheduleView) -> None:
    console = stdout_console()
    facts = {
        "schedule": view.name,
        "when": f"{view.when} ({view.timezone})",
        "next": "paused" if view.paused else local_time(view.next),
        "last run": "" if view.last is None else f"{view.last_run}, {local_time(view.last)}",
        "overlap": view.rule,
        "catch up": "yes" if view.catch_up else "no",
        "registered": local_time(view.registered)
        + (f", by {view.registered_by}" if view.registered_by else ""),
        "changed": _changed(view),
        "node": view.path,
    }
    for fact, value in facts.items():
        if value:
            console.print(f"{fact + ':':<12}{value}", markup=False, soft_wrap=True)
    if view.skipped:
        rows = [[local_time(item.time), local_time(item.until), item.reason] for item in view.skipped]
        console.print()
        console.print(table(["no run at", "until", "because"], rows))


def _changed(view: ScheduleView) -> str:
    act = view.changed
    return "" if act is None else f"{act.action}, {local_time(act.at)}, by {act.by} on {act.host}"


def pause(name: Name, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Stop enqueueing runs of a schedule until it is resumed; runs already enqueued continue.

    Example: orchestrator schedule pause nightly
    """
    with connected(start_own=False) as (client, _):
        client.schedules.pause(name)
    _say(f"{name} is paused", quiet=quiet)


def resume(name: Name, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Enqueue runs of a paused schedule again; fire times missed during the pause are skipped.

    Example: orchestrator schedule resume nightly
    """
    with connected(start_own=False) as (client, _):
        view = client.schedules.resume(name)
    _say(f"{name} runs next at {local_time(view.next)}", quiet=quiet)


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Remove a schedule; its runs stay.

    Example: orchestrator schedule remove nightly --yes
    """
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("there is no terminal to ask on: give --yes to remove the schedule")
        try:
            agreed = typer.confirm(f"Remove the schedule {name}?", err=True)
        except typer.Abort:  # Ctrl-C, or the end of the input
            raise typer.Exit(Exit.INTERRUPTED) from None
        if not agreed:
            raise typer.Exit(Exit.FAILED)
    with connected(start_own=False) as (client, _):
        client.schedules.remove(name)
    _say(f"{name} is removed", quiet=quiet)


def _say(words: str, *, quiet: bool) -> None:
    if not quiet:
        stderr_console().print(words, markup=False)
