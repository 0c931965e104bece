"""`orchestrator sql plan`: what a script reads and writes, without Spark; as a table, JSON or picture."""

import re
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.documents import print_json
from orchestrator.cli.options import Output, OutputFormat, Quiet, Variables, Verbose, parse_variables
from orchestrator.cli.output import short_path, stderr_console, stdout_console, table
from orchestrator.cli.picture import save_picture
from orchestrator.cli.sql.script import read_script, script_name
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import check_sql
from orchestrator.sql.drawing import drawn
from orchestrator.sql.flow import Flow, TargetColumn, flows, mode_of


def plan(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A script or job definition; - is a script on standard input."),
    ],
    variables: Variables = None,
    columns: Annotated[
        bool, typer.Option("--columns", help="Show what each column of a target is made of.")
    ] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Draw the tables and views into this file.")
    ] = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    _verbose: Verbose = 0,
) -> None:
    """Show what each statement of a script reads and writes, without Spark.

    With -o json the columns are always there. The guarantee of a write says what a further attempt of the job
    does to its rows. Exits with 2 if the script has an error that `sql lint` shows,
    other than one of columns.

    Example: orchestrator sql plan examples/flights.sql --svg flights.svg
    """
    definition = read_script(file, parse_variables(variables))
    checked = check_sql(definition, script_name(file, definition))
    if checked.plan is None:
        raise checked.error()
    found = flows(checked)
    if svg is not None:
        _draw(found, svg)
    match output:
        case OutputFormat.JSON:
            print_json([flow.document for flow in found])
        case OutputFormat.JSONL:
            for flow in found:
                print_json(flow.document, output)
        case OutputFormat.TABLE:
            stdout_console().print(_columns_table(found) if columns else _statements_table(found))
            if not quiet:
                stderr_console().print(f"mode: {mode_of(checked)}", markup=False)


def _draw(found: list[Flow], file: Path) -> None:
    try:
        picture = drawn(found)
    except ValueError as error:
        raise DefinitionError(f"--svg: {error}") from error
    save_picture(picture, file)


def _statements_table(found: list[Flow]) -> object:
    heads = ("LINE", "STATEMENT", "READS", "WRITES", "CONNECTOR", "GUARANTEE", "LOCATION")
    rows = [
        (
            flow.line,
            f"{flow.statement} {flow.declares}".rstrip(),
            ", ".join(flow.reads),
            flow.writes,
            flow.connector,
            re.split("[:;,]", flow.guarantee, maxsplit=1)[0],
            short_path(flow.location) if flow.location else "",
        )
        for flow in found
    ]
    return table(heads, rows)


def _columns_table(found: list[Flow]) -> object:
    rows = list[tuple[object, ...]]()
    for flow in found:
        if flow.writes and flow.columns is None:
            rows.append((flow.line, flow.writes, "unknown", "unknown"))
        rows += [(flow.line, flow.writes, each.column, _origins(each)) for each in flow.columns or ()]
    return table(("LINE", "TARGET", "COLUMN", "FROM"), rows)


def _origins(column: TargetColumn) -> str:
    if column.is_complete:
        return ", ".join(column.origins)
    return ", ".join((*column.origins, "unknown"))
