"""Loads the script of a file, a definition or standard input, for `orchestrator sql`."""

from pathlib import Path
from typing import Any

from orchestrator.cli.submission import load_definition
from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.reading import read_standard_input

STANDARD_INPUT = "<stdin>"


def load_script(file: str, variables: dict[str, Any]) -> Definition:
    """The definition of a script, whose text is empty if it has none; raises DefinitionError."""
    return _script_of_standard_input(variables) if file == "-" else load_definition(file, variables)


def _script_of_standard_input(variables: dict[str, Any]) -> Definition:
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
