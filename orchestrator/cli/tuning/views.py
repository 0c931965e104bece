"""The commands of `orchestrator tuning` that show decisions and savings."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from orchestrator.cli.connect import connected
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import show_rows, stderr_console, stdout_console, table
from orchestrator.cli.page import repeat
from orchestrator.cli.tuning.acts import Name
from orchestrator.client.client import Client
from orchestrator.logs.visible import visible
from orchestrator.model.errors import CorruptHistory, CorruptTuning, HistoryNotFound
from orchestrator.model.times import local_time
from orchestrator.tuning.record import ModeSource, StoredDecision, TuningRecord
from orchestrator.tuning.savings import Saving, saving_of
from orchestrator.tuning.signals import Run
from queues import AccessDenied

_LIST = {
    "name": "name",
    "mode": "mode",
    "runs": "runs",
    "when": "decided",
    "changes": "next run",
    "saved": "saved",
}
_REPORT = {
    "name": "name",
    "runs": "runs",
    "asked": "asked for",
    "given": "given",
    "next": "with the last decision",
    "saved": "saved",
    "short": "out of memory",
}


def list_(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """List the names with a decision about their resources, or with settings of an operator.

    `mode` is the one that an operator has set, or that of the last decision, with who has set it. `saved` is
    the share of the memory asked for that the last decision saves. A name whose node is damaged is
    listed with the reason.

    Example: orchestrator tuning list
    """
    with connected() as (client, _):

        def show_once() -> None:
            rows = [_listed(name, found, runs, output) for name, found, runs in _all(client)]
            show_rows(rows, _LIST, output, none="" if quiet or watch else "there are no tunings")

        repeat(show_once, watch)


def _all(client: Client) -> Iterator[tuple[str, TuningRecord | str, Sequence[Run]]]:
    """Each name with its record, or why that cannot be read, and its runs."""
    for name in client.tunings.names():
        try:
            runs = client.history(name)
        except (HistoryNotFound, CorruptHistory, AccessDenied):
            runs = ()
        try:
            record = client.tunings.read(name)
        except CorruptTuning as error:
            yield name, error.reason, runs
        except AccessDenied as error:
            yield name, str(error), runs
        else:
            if record.decisions or record.is_set:
                yield name, record, runs


def _listed(
    name: str, found: TuningRecord | str, runs: Sequence[Run], output: OutputFormat
) -> dict[str, Any]:
    if isinstance(found, str):
        row = dict.fromkeys((*_LIST, "error")) | {"name": name, "changes": {}, "error": found}
        return row if output is not OutputFormat.TABLE else row | {"changes": f"cannot be read: {found}"}
    last = found.decisions[-1] if found.decisions else None
    saving = saving_of(found, runs)
    share = None if saving is None else round(saving.share, 4)
    row = {
        "name": name,
        "mode": found.mode,
        "runs": None if last is None else last.runs,
        "when": None if last is None else last.at,
        "changes": {} if last is None else _changes(last),
        "saved": share,
        "error": None,
    }
    if output is not OutputFormat.TABLE:
        return row
    return row | {
        "mode": _mode(found) or "of definition or pool",
        "when": "" if last is None else local_time(last.at),
        "changes": "" if last is None else _words(last),
        "saved": "" if share is None else f"{share:.0%}",
    }


def _changes(decision: StoredDecision) -> dict[str, str]:
    """What the decision chooses otherwise than the definition."""
    return {
        name: str(found.get("after"))
        for name, found in decision.choices.items()
        if found.get("after") != found.get("asked")
    }


def _words(decision: StoredDecision) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in _changes(decision).items()) or "as asked for"


def show(
    name: Name,
    decisions: Annotated[
        int, typer.Option("--decisions", min=1, max=20, help="Show so many of the last decisions.")
    ] = 1,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Show the last decisions about the resources of a name, each resource with its reason.

    `asked for` is what definition and pool say, `before` what the last run had.

    Example: orchestrator tuning show flights
    """
    with connected() as (client, _):
        record = client.tunings.get(name)
    if output is not OutputFormat.TABLE:
        show_rows([record.model_dump(mode="json")], {}, output)
        return
    console = stdout_console()
    for line in _settings(record):
        console.print(line, markup=False)
    for decision in record.decisions[-decisions:]:
        whose = f"run {decision.run}" if decision.run else f"the run after {decision.job}"
        past = "1 past run" if decision.runs == 1 else f"{decision.runs} past runs"
        console.print(f"\n{local_time(decision.at)}, for {whose}, from {past}", markup=False)
        if decision.left_out:
            console.print(visible(f"left out: {decision.left_out}"), markup=False)
        rows = [
            (resource, found.get("asked"), found.get("before"), found.get("after"), found.get("why"))
            for resource, found in decision.choices.items()
        ]
        console.print(table(("resource", "asked for", "before", "next", "why"), rows))
    if not record.decisions:
        console.print("no decision yet: one follows the end of its next run", markup=False)


def _mode(record: TuningRecord) -> str:
    """The mode in force and who has set it, as an operator or the last decision says; empty if unknown."""
    if record.mode:
        return f"{record.mode} ({ModeSource.OPERATOR})"
    last = record.decisions[-1] if record.decisions else None
    if last is None or not last.mode or last.mode_from == ModeSource.OPERATOR:  # who has taken it back
        return ""
    return f"{last.mode} ({last.mode_from})"


def _settings(record: TuningRecord) -> Iterator[str]:
    yield f"{record.name}: mode {_mode(record) or 'of its definition or pool; its next decision shows it'}"
    for kind, amounts in (("pinned", record.pins), ("capped", record.caps)):
        if amounts:
            yield f"{kind}: " + ", ".join(f"{each}={each.written(value)}" for each, value in amounts.items())
    if record.forgotten:
        yield f"reset: runs up to {record.forgotten} do not count"
    if record.changed:
        yield f"changed by {record.changed.by} at {local_time(record.changed.at)}"


def report(output: Output = OutputFormat.TABLE, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Show the memory of the known runs of each name in GiB hours, and what the last decisions save of it.

    `asked for` is what definitions and pools say, `given` what the runs had. The largest savings come first.

    Example: orchestrator tuning report
    """
    with connected() as (client, _):
        found = list[Saving]()
        for name, record, runs in _all(client):
            if isinstance(record, str):
                stderr_console().print(visible(f"{name} is left out: {record}"), markup=False)
            elif (saving := saving_of(record, runs)) is not None:
                found.append(saving)
    found.sort(key=lambda each: each.next - each.asked)
    rows = [_saved(each, output) for each in found]
    if output is OutputFormat.TABLE and found:
        rows.append(_saved(_total(found), output))
    none = "" if quiet else "no run of a tuned name is known"
    show_rows(rows, _REPORT, output, none=none)


def _total(found: Sequence[Saving]) -> Saving:
    return Saving(
        "all",
        sum(each.runs for each in found),
        sum(each.asked for each in found),
        sum(each.given for each in found),
        sum(each.next for each in found),
        sum(each.short for each in found),
    )


def _saved(each: Saving, output: OutputFormat) -> dict[str, Any]:
    amounts = {"asked": each.asked, "given": each.given, "next": each.next}
    row: dict[str, Any] = {"name": each.name, "runs": each.runs, "short": each.short}
    if output is not OutputFormat.TABLE:
        return (
            row | {f"{name}_gib_hours": round(it, 6) for name, it in amounts.items()} | {"saved": each.share}
        )
    shown = {name: f"{it:,.3f} GiB h" for name, it in amounts.items()}
    return row | shown | {"saved": f"{each.share:.0%}"}
