"""Definitions in the files of a user: in YAML or JSON, or a script or Python file alone."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.model.definition import Definition, build_definition, refuse_nul
from orchestrator.model.errors import DefinitionError
from orchestrator.model.program_files import PROGRAMS, looks_like_file, read_program
from orchestrator.model.reading import read_document
from spark_runner.protocol.text import shortened

_PROGRAMS = {".sql", ".py"}
_DEFINITIONS = {".yaml", ".yml", ".json"}
SUFFIXES = frozenset(_PROGRAMS | _DEFINITIONS)
"""How the names of files end that `load_definition` accepts."""


def load_definition(
    path: str | Path,
    *,
    variables: Mapping[str, str | float] | None = None,
    pool: str | None = None,
    attempts: int | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    arguments: Sequence[str] | None = None,
) -> Definition:
    """The definition in a file (.yaml, .json), or for a script without one (.sql, .py).

    `variables`, `pool`, `checkpoint` and `arguments` override those of the definition. `attempts` applies
    only to a script without a definition. Raises DefinitionError.
    """
    file = Path(path)
    if file.suffix in _PROGRAMS:
        retry = {} if attempts is None else {"retry": {"attempts": attempts}}
        given: dict[str, Any] = {
            "variables": _as_dict(variables),
            "pool": pool,
            "checkpoint": checkpoint,
            **retry,
        }
        given["arguments"] = arguments or None
        chosen = {name: value for name, value in given.items() if value is not None}
        return definition_of_program(file, **chosen)
    if file.suffix not in _DEFINITIONS:
        raise DefinitionError(
            f"{shortened(str(path), 300)}: unknown file type {shortened(file.suffix, 100)!r}: "
            "expected a script (.sql, .py) or a job definition (.yaml, .json)"
        )
    definition = parse_definition(read_program(file), str(path), file.parent)
    return overridden(
        definition, str(path), variables=variables, pool=pool, checkpoint=checkpoint, arguments=arguments
    )


def overridden(
    definition: Definition,
    source: str,
    *,
    variables: Mapping[str, str | float] | None = None,
    pool: str | None = None,
    checkpoint: Mapping[str, Any] | None = None,
    arguments: Sequence[str] | None = None,
) -> Definition:
    """The definition with these fields in place of its own; raises DefinitionError."""
    given = {"pool": pool, "checkpoint": checkpoint, "arguments": arguments or None}
    chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if variables:
        given_ones = _as_dict(variables)
        is_dict = isinstance(given_ones, dict)
        chosen["variables"] = definition.variables | given_ones if is_dict else given_ones
    if not chosen:
        return definition
    return build_definition(definition.model_dump(exclude_defaults=True) | chosen, source)


def _as_dict(variables: object) -> Any:
    """Any mapping as a dictionary; what is none stays, so that the definition refuses it."""
    return dict(variables) if isinstance(variables, Mapping) else variables or {}


def parse_definition(text: str, source: str, directory: Path) -> Definition:
    """The definition in YAML or JSON text; names of script files are relative to `directory`.

    Raises DefinitionError for text that is not a mapping, unknown fields (with the nearest name), invalid
    values and files that cannot be read.
    """
    try:
        document = read_document(text, source)
    except ValueError as error:
        raise DefinitionError(str(error)) from error
    if not isinstance(document, dict):
        raise DefinitionError(f"{source}: a job definition is a mapping of fields, see docs/reference.md")
    refuse_nul(document, source)
    for field in PROGRAMS:
        if document.get(field) not in (None, ""):
            document[field] = _program(document[field], field, source, directory)
    named = document.get("directory")
    if isinstance(named, str):
        document["directory"] = _folder(named, source, directory)
    elif not any(isinstance(document.get(field), Path) for field in PROGRAMS):
        document.setdefault("directory", str(directory.resolve()))
    return build_definition(document, source)


def _program(value: object, field: str, source: str, directory: Path) -> object:
    """The program that a field gives: the path of its file, or its text."""
    match value:
        case {"text": str(text), **others} if not others:
            return text
        case str() if "\n" in value:
            raise DefinitionError(f"{source}: field {field!r} names a file; {_text_goes(field)}")
        case str():
            path = directory / value.strip()
            if not looks_like_file(value.strip()) and not _is_there(path):
                raise DefinitionError(
                    f"{source}: field {field!r} names a file, and there is no file"
                    f" {shortened(value.strip(), 100)!r}; {_text_goes(field)}"
                )
            return path
        case _:
            raise DefinitionError(f"{source}: field {field!r} is the name of a file, or text: {{text: ...}}")


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (OSError, ValueError):  # ValueError: half of a surrogate pair
        return False
    return True


def _text_goes(field: str) -> str:
    return f"write a text as\n  {field}:\n    text: |\n      ..."


def _folder(named: str, source: str, directory: Path) -> str:
    """The folder that a definition names, which may be relative to that of its file."""
    if not named:
        return ""
    try:
        folder = Path(named).expanduser()
    except RuntimeError as error:  # ~name, and no such user
        raise DefinitionError(f"{source}: field 'directory': {shortened(named, 300)!r}: {error}") from error
    return str(folder if folder.is_absolute() else (directory / folder).resolve())


def definition_of_program(path: Path, **fields: Any) -> Definition:
    """The definition of a lone script or Python file, with these fields added."""
    kind = "python" if path.suffix == ".py" else "script"
    name = re.sub(r"[^A-Za-z0-9._-]", "-", path.stem)[:128] or "job"
    return build_definition({"name": name, kind: path, **fields}, str(path))
