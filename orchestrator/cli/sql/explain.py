"""`orchestrator sql explain`: what Spark says of a script before it runs."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from orchestrator.cli.documents import print_json
from orchestrator.cli.exits import Exit
from orchestrator.cli.options import Output, OutputFormat, Quiet, Variables, Verbose, parse_variables
from orchestrator.cli.output import short_path, stderr_console, stdout_console, table
from orchestrator.cli.sql.analysis import Analysis, analyse_definition
from orchestrator.cli.sql.lint import document_of, shown, summary_of
from orchestrator.cli.sql.script import read_script, script_name


def explain(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A script or a job definition; - is a script on stdin.")
    ],
    connect: Annotated[
        bool,
        typer.Option("--connect", help="Read one row of each source; check that each target can be written."),
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Show Spark's plan of each statement.")] = False,
    variables: Variables = None,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    _verbose: Verbose = 0,
) -> None:
    """Analyse a script with Spark, and show the columns, the guarantee and all errors of its statements.

    A Spark of this machine analyses every statement with empty tables of the declared columns. A source
    without declared columns is read for its columns. Nothing is written. Exits with 1 if there is an error.

    Example: orchestrator sql explain examples/flights.sql --connect
    """
    definition = read_script(file, parse_variables(variables))
    name = script_name(file, definition)
    found = analyse_definition(definition, name, connect=connect, with_plan=plan, quiet=quiet)
    if output is OutputFormat.TABLE:
        show_analysis(found, name)
        if not quiet:
            stderr_console().print(summary_of(found.findings, 1))
    else:
        print_json(document(found), output)
    if found.has_error:
        raise typer.Exit(Exit.FAILED)


def document(found: Analysis) -> dict[str, Any]:
    """The analysis as JSON."""
    report = {key: found.report.get(key, []) for key in ("statements", "contacted", "probes")}
    return {**report, "findings": [document_of(finding) for finding in found.findings]}


def show_analysis(found: Analysis, name: str) -> None:
    """Write the statements, the probes and the findings to stdout."""
    console = stdout_console()
    for statement in found.report.get("statements", ()):
        console.print(f"{name}:{statement['line']}: {_title(statement)}", markup=False, style="bold")
        for line in _facts(statement):
            console.prose(line, indent=2)
        if columns := statement.get("columns"):
            is_declared = any(column["into"] for column in columns)
            headings = ["column", "type", "written as"] if is_declared else ["column", "type"]
            rows = [[column["name"], column["type"], column["into"]][: len(headings)] for column in columns]
            console.print(table(headings, rows))
        if plan := statement.get("plan"):
            console.print(plan, markup=False, soft_wrap=True)
        console.print()
    for probe in found.report.get("probes", ()):
        console.prose(f"{probe['verb']} {probe['table']}: {_answer(probe)}")
    for finding in found.findings:
        console.prose(shown(finding))


def _title(statement: Mapping[str, Any]) -> str:
    if statement["kind"] == "catalog":
        return f"{statement['action']} {statement['target']}".strip()
    if statement["kind"] != "insert":
        return str(statement["kind"]).upper()
    verb = "OVERWRITE" if statement["overwrite"] else "INTO"
    where = f" -> {short_path(statement['location'])}" if statement["location"] else ""
    return f"INSERT {verb} {statement['target']} ({statement['connector']}){where}"


def _facts(statement: Mapping[str, Any]) -> Iterator[str]:
    if guarantee := statement.get("guarantee"):
        yield guarantee
    if trigger := statement.get("trigger_ms"):
        yield f"mode {statement['mode']}, with a micro-batch each {trigger / 1000:g} s"
    elif mode := statement.get("mode"):
        yield f"mode {mode}"
    if why := statement.get("skipped"):
        yield f"not analysed: {why}"


def _answer(probe: Mapping[str, Any]) -> str:
    if probe["ok"] is None:
        return f"not checked: {probe['message']}"
    if not probe["ok"]:
        return f"failed: {probe['message']}"
    if probe["verb"] == "read":
        return "ok" if probe["rows"] else "ok, and it has no rows"
    return "ok"
