"""`orchestrator sql lint`: all errors and warnings of scripts, found without Spark and without ZooKeeper."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from orchestrator.cli.connection.lookup import cluster_connections
from orchestrator.cli.documents import print_json
from orchestrator.cli.exits import Exit
from orchestrator.cli.inputs import missing_here
from orchestrator.cli.options import Output, OutputFormat, Quiet, Variables, Verbose, parse_variables
from orchestrator.cli.output import stderr_console, stdout_console
from orchestrator.cli.sql.script import STANDARD_INPUT, script_name, script_of_standard_input
from orchestrator.cli.sql.script_errors import script_errors
from orchestrator.cli.submission import load_definition
from orchestrator.model.definition import Definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import check_sql, literal_secrets, warning
from spark_runner.sql.compiler.connections import FindConnection
from spark_runner.sql.text.errors import SqlError


class Severity(StrEnum):
    """Whether a finding keeps the script from being submitted."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or warning; line and column are from 1, or 0 for the file as a whole."""

    file: str
    line: int
    column: int
    severity: Severity
    message: str
    excerpt: str = ""  # the line of the script with a caret below the place


def lint(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Scripts or job definitions; - is a script on standard input."),
    ],
    variables: Variables = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings, too.")] = False,
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster",
            help="Look up named connections in ZooKeeper; without it, their tables have warnings.",
        ),
    ] = False,
    output: Output = OutputFormat.TABLE,
    quiet: Quiet = False,
    _verbose: Verbose = 0,
) -> None:
    """Check scripts without Spark, and show all errors and warnings.

    Exits with 1 if a script has an error. What passes is accepted by `job submit`; errors that depend on the
    data, and on the columns of files, are found at run time.

    Example: orchestrator sql lint examples/flights.sql --strict
    """
    values = parse_variables(variables)
    with cluster_connections() as find:
        connections = find if cluster else None
        found = [finding for file in files for finding in findings(file, values, connections)]
    if quiet and not strict:
        found = [finding for finding in found if finding.severity is Severity.ERROR]
    match output:
        case OutputFormat.JSON:
            print_json([document_of(finding) for finding in found])
        case OutputFormat.JSONL:
            for finding in found:
                print_json(document_of(finding), output)
        case OutputFormat.TABLE:
            for finding in found:
                stdout_console().prose(shown(finding))
    errors = sum(finding.severity is Severity.ERROR for finding in found)
    warnings = len(found) - errors
    if not quiet:
        stderr_console().print(summary_of(found, len(files)))
    if errors or (strict and warnings):
        raise typer.Exit(Exit.FAILED)


def findings(
    file: str, variables: dict[str, Any], connections: FindConnection | None = None
) -> Iterator[Finding]:
    """The errors and warnings of one file: first the errors, then the warnings, in the order of its lines."""
    try:
        definition = script_of_standard_input(variables) if file == "-" else load_definition(file, variables)
    except DefinitionError as refused:
        yield _refusal(file, str(refused))
        return
    if not definition.script:
        yield Finding(file, 0, 0, Severity.ERROR, "it has no SQL script")
        return
    yield from findings_of(definition, script_name(file, definition), connections)


def findings_of(
    definition: Definition, file: str, connections: FindConnection | None = None
) -> Iterator[Finding]:
    """The errors and warnings of the script of a definition, which errors call `file`."""
    checked = check_sql(definition, file, connections)
    yield from (of_error(error, Severity.ERROR) for error in script_errors(checked, definition))
    missing = missing_here(definition, checked.plan, file=file)
    warnings = sorted([*checked.warnings, *missing], key=lambda error: (error.line, error.column))
    yield from (of_error(error, Severity.WARNING) for error in warnings)
    if secrets := literal_secrets(definition, checked.plan):
        yield Finding(file, 0, 0, Severity.WARNING, warning(secrets))


def _refusal(file: str, message: str) -> Finding:
    """The error of a file or definition that cannot be read, with the place that it names."""
    shown = STANDARD_INPUT if file == "-" else file
    named = re.fullmatch(r":(?:(\d+):(\d+):)? (.*)", message.removeprefix(file), re.DOTALL)
    if named is None:
        return Finding(shown, 0, 0, Severity.ERROR, message)
    return Finding(shown, int(named[1] or 0), int(named[2] or 0), Severity.ERROR, named[3])


def of_error(error: SqlError, severity: Severity) -> Finding:
    """The finding of an error of a script."""
    return Finding(error.file, error.line, error.column, severity, error.message, error.excerpt())


def document_of(finding: Finding) -> dict[str, Any]:
    """A finding as JSON."""
    document = asdict(finding)
    del document["excerpt"]
    return document


def shown(finding: Finding) -> str:
    """A finding as compilers print it, with its line of the script."""
    file = finding.file.replace("\n", "\\n")  # it would look like a finding of its own
    place = f"{file}:{finding.line}:{finding.column}" if finding.line else file
    head = f"{place}: {finding.severity}: {finding.message}"
    return f"{head}\n{finding.excerpt}" if finding.excerpt else head


def summary_of(found: Sequence[Finding], files: int) -> str:
    """The numbers of errors and warnings."""
    errors = sum(finding.severity is Severity.ERROR for finding in found)
    warnings = len(found) - errors
    return f"{_count(files, 'file')}: {_count(errors, 'error')}, {_count(warnings, 'warning')}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
