"""A script and its plan, for the commands that read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli.connection.lookup import cluster_connections
from orchestrator.cli.submission import load_definition
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.plan import check_sql
from orchestrator.model.reading import read_standard_input
from spark_runner.sql.text.errors import SqlError

STANDARD_INPUT = "<stdin>"


@dataclass(frozen=True, slots=True)
class Script:
    """The definition of a script, its plan with the text, and the warnings of the check."""

    definition: Definition
    plan: Mapping[str, Any]
    warnings: tuple[SqlError, ...] = ()


def load_script(file: str, variables: dict[str, str], *, only_declares: bool = False) -> Script:
    """The script of a file, checked without Spark; raises DefinitionError, SqlError with all errors."""
    definition = read_script(file, variables)
    return checked_script(definition, script_name(file, definition), only_declares=only_declares)


def read_script(file: str, variables: dict[str, str]) -> Definition:
    """The definition of a script in a file or on standard input; raises DefinitionError."""
    definition = script_of_standard_input(variables) if file == "-" else load_definition(file, variables)
    if not definition.script:
        raise DefinitionError(f"{file}: it has no SQL script")
    return definition


def checked_script(definition: Definition, name: str, *, only_declares: bool = False) -> Script:
    """The script of a definition, checked without Spark; `name` is its file in errors."""
    with cluster_connections() as find:
        found = check_sql(definition, name, find, only_declares=only_declares)
    if found.plan is None:
        raise found.error()
    text = {"file": name, "source": definition.script, "directory": definition.directory}
    return Script(definition, {**found.plan, **text}, found.warnings)


def script_of_standard_input(variables: dict[str, Any]) -> Definition:
    """The definition of a script on standard input, whose relative paths refer to the working directory."""
    try:
        text = read_standard_input()
    except ValueError as error:
        raise DefinitionError(f"-: {error}") from error
    if not text.strip():
        raise DefinitionError("-: is empty")
    document = {"name": "script", "script": text, "directory": str(Path.cwd()), "variables": variables}
    return build_definition(document, "-")


def script_name(file: str, definition: Definition) -> str:
    """The name of the script in messages: its path as seen from here, or its place in the definition."""
    if file == "-":
        return STANDARD_INPUT
    if file.endswith(".sql"):
        return file
    return str(Path(file).with_name(definition.file)) if definition.file else f"{file}#script"
