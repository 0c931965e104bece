"""Load the definition from the file that the user names."""

from pathlib import Path
from typing import Any

from orchestrator.model.definition import Definition, build_definition
from orchestrator.model.definition_files import definition_of_program, parse_definition, read_program
from orchestrator.model.errors import DefinitionError
from orchestrator.model.reading import read_standard_input

_PROGRAMS = {".sql", ".py"}
_DEFINITIONS = {".yaml", ".yml", ".json"}


def load_definition(
    file: str,
    variables: dict[str, str],
    *,
    attempts: int | None = None,
    pool: str | None = None,
    checkpoint: dict[str, Any] | None = None,
) -> Definition:
    """The definition in a file, for a script without a definition, or on standard input for `-`.

    `variables`, `pool` and `checkpoint` override those of the definition. `attempts` applies only to a script
    without a definition. Raises DefinitionError.
    """
    path = Path(file)
    given = {"pool": pool, "checkpoint": checkpoint}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if file == "-":
        try:
            text = read_standard_input()
        except ValueError as error:
            raise DefinitionError(f"standard input: {error}") from error
        definition = parse_definition(text, "standard input", Path.cwd())
    elif path.suffix in _PROGRAMS:
        retry = {} if attempts is None else {"retry": {"attempts": attempts}}
        return definition_of_program(path, variables=variables, **retry, **chosen)
    elif path.suffix in _DEFINITIONS:
        definition = parse_definition(read_program(path), file, path.parent)
    else:
        raise DefinitionError(
            f"{file}: unknown file type {path.suffix!r}: "
            "expected a script (.sql, .py) or a job definition (.yaml, .json)"
        )
    if variables:
        chosen["variables"] = {**definition.variables, **variables}
    if not chosen:
        return definition
    return build_definition(definition.model_dump(exclude_defaults=True) | chosen, file)
