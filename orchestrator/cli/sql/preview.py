"""`orchestrator sql preview`: the first rows of one table or view of a script; nothing is written."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from orchestrator.cli.documents import print_json
from orchestrator.cli.options import Output, OutputFormat, Quiet, Variables, Verbose, parse_variables
from orchestrator.cli.output import stderr_console, stdout_console, table
from orchestrator.cli.sql.local_spark import ask_spark
from orchestrator.cli.sql.script import Script, load_script
from orchestrator.model.errors import DefinitionError
from spark_runner.connectors import registry
from spark_runner.protocol.text import did_you_mean

_MAX_ROWS, _MAX_WIDTH = 1_000, 10_000


def preview(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A script or a job definition; - is a script on stdin.")
    ],
    name: Annotated[str, typer.Argument(metavar="TABLE", help="A table or view that the script declares.")],
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, max=_MAX_ROWS, help="Rows to show.")] = 20,
    width: Annotated[
        int, typer.Option(min=2, max=_MAX_WIDTH, help="Characters of a cell; longer values are cut.")
    ] = 60,
    variables: Variables = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    _verbose: Verbose = 0,
) -> None:
    """Show the first rows of a table or view of a script, and write nothing.

    A Spark of this machine applies the settings and declares what the table needs. It runs no INSERT, query
    or ASSERT, and ends with the command.

    Example: orchestrator sql preview examples/flights.sql departures -n 5
    """
    script = load_script(file, parse_variables(variables), only_declares=True)
    name = _declared(script, name)
    shown = ask_spark(script, {"kind": "preview", "table": name, "rows": rows, "width": width}, quiet=quiet)
    if output is not OutputFormat.TABLE:
        print_json(shown, output)
        return
    columns = [column["name"] for column in shown["columns"]]
    stdout_console().print(table(columns, [[_cell(cell) for cell in row] for row in shown["rows"]]))
    if not quiet:
        stderr_console().print(_summary(shown), markup=False)


def _declared(script: Script, name: str) -> str:
    """The name as the script writes it; raises DefinitionError for one that cannot be read."""
    found: Mapping[str, Any] | None = None
    names = dict[str, None]()
    for step in script.plan["steps"]:
        if step["kind"] in {"table", "view"}:
            names[step["name"]] = None
            if step["name"].lower() == name.lower():
                found = step
    file = script.plan["file"]
    if found is None:
        hint = did_you_mean(name, names) or (f"; it has {', '.join(names)}" if names else "")
        raise DefinitionError(f"{file}: the script declares no table or view '{name}'{hint}")
    if found.get("connector") and not _is_readable(found["connector"]):
        raise DefinitionError(
            f"{file}:{found['line']}: table '{found['name']}' has no rows to show: "
            f"connector '{found['connector']}' can only be written"
        )
    return str(found["name"])


def _is_readable(connector: str) -> bool:
    """Whether tables of a connector can be read."""
    found = registry.find(connector)
    return found is not None and bool(found.source)


def _cell(cell: str | None) -> str:
    return "NULL" if cell is None else cell


def _summary(shown: Mapping[str, Any]) -> str:
    count = len(shown["rows"])
    types = ", ".join(f"{column['name']} {column['type'].upper()}" for column in shown["columns"])
    first = "the first " if shown["has_more"] else ""
    names = ", ".join(shown["filtered"])
    without = f"; rows of {names} that do not fit are left out" if names else ""
    return f"{first}{count:,} {'row' if count == 1 else 'rows'} of {shown['table']} ({types}){without}"
