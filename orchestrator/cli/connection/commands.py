"""The commands of `orchestrator connection`."""

from typing import Annotated, Any

import typer

from orchestrator.cli.acting import confirm
from orchestrator.cli.connect import connected
from orchestrator.cli.exits import Exit
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import show_rows, stderr_console
from orchestrator.connections.store import ConnectionView
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.model.errors import InvalidConnection
from orchestrator.model.times import local_time
from spark_runner.references.errors import Unresolved
from spark_runner.references.reference import parse_pieces, references_in
from spark_runner.references.sources import Sources

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name that tables give as 'connection'.")]
_COLUMNS = {"name": "name", "connector": "connector", "shown": "options", "when": "changed", "by": "by"}


def set_(
    name: Name,
    connector: Annotated[str, typer.Argument(metavar="CONNECTOR", help="The connector of its tables.")],
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="OPTION=VALUE", help="Options of the connector; secrets as references."),
    ] = None,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Store a connection, or replace the one of its name with all its options.

    Jobs that are submitted later use it; jobs and schedules that exist keep the options that they have.

    Example: orchestrator connection set exports csv delimiter=';' null_value='${env:EXPORT_NULL}'
    """
    given = _options(options or [])
    with connected(start_own=False) as (client, _):
        view = client.connections.set(name, connector, given)
    if not quiet:
        stderr_console().print(f"{view.name} is stored in {view.path}", markup=False)


def _options(assignments: list[str]) -> dict[str, str]:
    found = dict[str, str]()
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not (equals and key):
            # Not quoted: it may be a password.
            raise InvalidConnection("an option of a connection is written OPTION=VALUE")
        if key in found:
            raise InvalidConnection(f"option {key!r} is given twice")
        found[key] = value
    return found


def list_(output: Output = OutputFormat.TABLE, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """List all connections.

    Example: orchestrator connection list -o json
    """
    with connected() as (client, _):
        rows = [_row(view, output) for view in client.connections.list()]
    show_rows(rows, _COLUMNS, output, none="" if quiet else "there are no connections")


def _row(view: ConnectionView, output: OutputFormat) -> dict[str, Any]:
    row = view.model_dump(mode="json")
    if output is not OutputFormat.TABLE:
        return row
    act = view.changed
    shown = f"cannot be read: {view.error}" if view.error else ", ".join(view.options)
    when, by = (local_time(act.at), act.by) if act else ("", "")
    return row | {"shown": shown, "when": when, "by": by}


def show(name: Name, output: Output = OutputFormat.TABLE, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Show the options of a connection; references, never values.

    Example: orchestrator connection show exports
    """
    with connected() as (client, _):
        view = client.connections.get(name)
    if output is not OutputFormat.TABLE:
        show_rows([view.model_dump(mode="json")], {}, output)
        return
    rows = [{"option": "connector", "value": view.connector}]
    rows += [{"option": option, "value": value} for option, value in view.options.items()]
    show_rows(rows, {"option": "option", "value": "value"}, output)


def probe(
    name: Name, output: Output = OutputFormat.TABLE, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """Check the options of a connection, and read the values of its references on this host.

    The sources are those of the settings of this command; a driver on another host may have others. No value
    is shown. Exits with 1 if an option is wrong or a reference has no value.

    Example: orchestrator connection test exports
    """
    with connected() as (client, settings):
        view = client.connections.get(name)
    client.connections.check(view)
    sources = settings.references.sources()
    rows = [
        {"option": option, "reference": str(reference), "result": _result(sources, reference)}
        for option, value in view.options.items()
        for reference in references_in(parse_pieces(value))
    ]
    show_rows(rows, {"option": "option", "reference": "reference", "result": "result"}, output)
    failed = [row for row in rows if row["result"] != "ok"]
    if not quiet:
        words = f"without a value: {len(failed)}" if failed else "all options are valid"
        stderr_console().print(f"{name}: {words}; references: {len(rows)}", markup=False)
    if failed:
        raise typer.Exit(Exit.FAILED)


def _result(sources: Sources, reference: Any) -> str:
    try:
        REDACTOR.add([sources.value(reference)])
    except Unresolved as error:
        return str(error).partition(" has no value: ")[2]
    return "ok"


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Remove a connection; jobs and schedules that use it keep its options.

    Example: orchestrator connection remove exports --yes
    """
    confirm(f"Remove the connection {name}?", yes=yes)
    with connected(start_own=False) as (client, _):
        client.connections.remove(name)
    if not quiet:
        stderr_console().print(f"{name} is removed", markup=False)
