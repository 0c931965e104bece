"""Definitions in the files of a user: in YAML or JSON, or a script or Python file alone."""

import re
from pathlib import Path
from typing import Any

from orchestrator.model.definition import Definition, build_definition, refuse_nul
from orchestrator.model.errors import DefinitionError
from orchestrator.model.reading import read_document, read_file
from spark_runner.protocol.text import shortened


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
    for field in ("script", "python"):
        value = document.get(field)
        # One line that ends in .sql or .py is the name of a file; anything else is the text itself.
        if isinstance(value, str) and "\n" not in value and value.strip().lower().endswith((".sql", ".py")):
            path = (directory / value.strip()).resolve()
            document |= {field: read_program(path)}
            document.setdefault("file", path.name)
            document.setdefault("directory", str(path.parent))
    if not isinstance(named := document.setdefault("directory", str(directory.resolve())), str):
        return build_definition(document, source)  # raises: it is not text
    try:
        folder = Path(named).expanduser()
    except RuntimeError as error:  # ~name, and no such user
        raise DefinitionError(f"{source}: field 'directory': {shortened(named, 300)!r}: {error}") from error
    if named and not folder.is_absolute():
        folder = (directory / folder).resolve()
    document |= {"directory": str(folder) if named else ""}
    return build_definition(document, source)


def definition_of_program(path: Path, **fields: Any) -> Definition:
    """The definition of a lone script or Python file, with these fields added."""
    kind = "python" if path.suffix == ".py" else "script"
    if not (text := read_program(path)).strip():
        raise DefinitionError(f"{path}: is empty")
    document = {
        "name": re.sub(r"[^A-Za-z0-9._-]", "-", path.stem)[:128] or "job",
        kind: text,
        "file": path.name,
        "directory": str(path.resolve().parent),
        **fields,
    }
    return build_definition(document, str(path))


def read_program(path: Path) -> str:
    """The text of a script; raises DefinitionError when it cannot be read."""
    try:
        return read_file(path)
    except OSError as error:
        raise DefinitionError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # also for NUL in a path
        raise DefinitionError(f"{shortened(str(path), 300)}: {error}") from error
