"""Load the definition that the user names: a file, or standard input."""

from pathlib import Path
from typing import Any

from orchestrator.model import definition_files
from orchestrator.model.definition import Definition
from orchestrator.model.errors import DefinitionError
from orchestrator.model.reading import read_standard_input


def load_definition(
    file: str,
    variables: dict[str, str],
    *,
    attempts: int | None = None,
    pool: str | None = None,
    checkpoint: dict[str, Any] | None = None,
    arguments: list[str] | None = None,
) -> Definition:
    """The definition in a file, for a script without a definition, or on standard input for `-`.

    Raises DefinitionError.
    """
    if file != "-":
        return definition_files.load_definition(
            file,
            variables=variables,
            pool=pool,
            attempts=attempts,
            checkpoint=checkpoint,
            arguments=arguments,
        )
    try:
        text = read_standard_input()
    except ValueError as error:
        raise DefinitionError(f"standard input: {error}") from error
    definition = definition_files.parse_definition(text, "standard input", Path.cwd())
    return definition_files.overridden(
        definition, file, variables=variables, pool=pool, checkpoint=checkpoint, arguments=arguments
    )
