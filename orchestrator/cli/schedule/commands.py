"""The commands of `orchestrator schedule` that show and change schedules."""

from functools import partial
from typing import Annotated, Any

import typer

from orchestrator.admission.same_name import listed
from orchestrator.cli.acting import confirm
from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import (
    show_fact,
    show_page,
    show_rows,
    stderr_console,
    stdout_console,
    table,
)
from orchestrator.cli.page import repeat
from orchestrator.model.times import ago, from_text, local_time
from orchestrator.schedules.view import AwaitedName, ScheduleView

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name in the definition.")]
_COLUMNS = {
    "name": "name",
    "when": "when",
    "next_here": "next",
    "last_run": "last run",
    "last_status": "status",
    "last_ago": "fired",
}
_FACT_INDENT = 12
_DROP = ("fired", "last run", "when", "next")


def list_(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """List all schedules with their next fire times and their last runs.

    Example: orchestrator schedule list -o json
    """
    with connected() as (client, _):

        def show_once() -> None:
            rows = [_row(view, output) for view in client.schedules.list()]
            none = "" if quiet or watch else "there are no schedules"
            show_rows(rows, _COLUMNS, output, _DROP, none=none)

        repeat(show_once, watch)


def _row(view: ScheduleView, output: OutputFormat) -> dict[str, Any]:
    row = view.model_dump(mode="json", exclude={"definition"})
    if output is not OutputFormat.TABLE:
        return row
    row["when"] = when(view)
    row |= {"next_here": "" if view.error is not None else _following(view), "last_ago": ago(view.last)}
    manual = view.manual_run
    if manual is not None and (view.last is None or from_text(manual.at) > from_text(view.last)):
        row |= {"last_run": manual.id, "last_status": manual.status, "last_ago": ago(manual.at)}
    return row


def _following(view: ScheduleView) -> str:
    """What comes next, in one cell."""
    if view.paused:
        return "paused"
    if view.armed_run is not None or not view.waits_for:
        return view.armed_run or local_time(view.next)
    return f"waits for {listed(_missing(view))}" if not view.is_complete else "waits for the last run"


def _missing(view: ScheduleView) -> list[str]:
    return [each.name for each in view.waits_for if not each.counts]


def when(view: ScheduleView) -> str:
    """The rule of a schedule with its time zone, or why it cannot be read."""
    if view.error is not None:
        return f"cannot be read: {view.error}"
    return f"{view.when} {view.timezone}" if view.timezone != "UTC" else view.when


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
        "when": view.when if view.waits_for else f"{view.when} ({view.timezone})",
        "next": _next(view),
        "last run": _last(view),
        "run now": _manual(view),
        "overlap": view.rule,
        "catch up": "" if view.waits_for else "yes" if view.catch_up else "no",
        "registered": local_time(view.registered)
        + (f", by {view.registered_by}" if view.registered_by else ""),
        "changed": _changed(view),
        "node": view.path,
    }
    for fact, value in facts.items():
        if value:
            show_fact(fact, value, _FACT_INDENT)
    if view.waits_for:
        console.print()
        console.print(table(["waits for", "last success", "job", "counts"], [*map(_awaited, view.waits_for)]))
    if view.skipped:
        rows = [[local_time(item.time), local_time(item.until), item.reason] for item in view.skipped]
        console.print()
        console.print(table(["no run at", "until", "because"], rows))


def _next(view: ScheduleView) -> str:
    if view.paused:
        return "paused"
    if view.armed_run is not None:
        return f"{view.armed_run}, which a leader enqueues now"
    if not view.waits_for:
        return local_time(view.next)
    if not view.is_complete:
        missing = _missing(view)
        return f"once {listed(missing)} {'has' if len(missing) == 1 else 'have'} succeeded"
    if view.running and view.overlap == "skip":
        return f"once {view.last_run} has ended"
    return "a leader enqueues it now"


def _last(view: ScheduleView) -> str:
    if view.last is None:
        return ""
    ended = f", ended {ago(view.last_ended)}" if view.last_ended else ""
    return f"{view.last_run}, {local_time(view.last)}, {view.last_status}{ended}"


def _manual(view: ScheduleView) -> str:
    run = view.manual_run
    return "" if run is None else f"{run.id}, {local_time(run.at)}, {run.status}"


def _awaited(each: AwaitedName) -> list[object]:
    last = (
        f"cannot be read: {each.error}"
        if each.error
        else ago(each.last_success) or "none since it was registered"
    )
    return [each.name, last, each.job, "yes" if each.counts else "no"]


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
    """Enqueue runs of a paused schedule again; what the pause missed is skipped.

    Example: orchestrator schedule resume nightly
    """
    with connected(start_own=False) as (client, _):
        view = client.schedules.resume(name)
    following = f"next at {local_time(view.next)}" if view.next else view.when
    _say(f"{name} runs {following}", quiet=quiet)


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Remove a schedule; its runs stay.

    Example: orchestrator schedule remove nightly --yes
    """
    confirm(f"Remove the schedule {name}?", yes=yes)
    with connected(start_own=False) as (client, _):
        client.schedules.remove(name)
    _say(f"{name} is removed", quiet=quiet)


def _say(words: str, *, quiet: bool) -> None:
    if not quiet:
        stderr_console().print(words, markup=False)
