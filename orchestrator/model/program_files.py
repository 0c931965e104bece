"""Programs in files: in a definition, a path in place of a text means the text of that file."""

import re
from pathlib import Path
from typing import Any

from orchestrator.model.errors import DefinitionError
from orchestrator.model.reading import read_file
from spark_runner.protocol.text import shortened

PROGRAMS = ("script", "python")
"""The fields with the text of a program."""

_FILE_NAME = re.compile(r"\S+\.(sql|py)", re.IGNORECASE)


def with_texts(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the text of each program that it gives as a path.

    `file` and `directory` become those of the file, unless the document has its own. Raises DefinitionError
    for a file that is empty or cannot be read.
    """
    for field in PROGRAMS:
        path = document.get(field)
        if not isinstance(path, Path):
            continue
        text = read_program(path)
        if not text.strip():
            raise DefinitionError(f"{path}: is empty")
        place = {"file": path.name, "directory": str(path.resolve().parent)}
        document = place | document | {field: text}
    return document


def read_program(path: Path) -> str:
    """The text of a script; raises DefinitionError when it cannot be read."""
    try:
        return read_file(path)
    except OSError as error:
        raise DefinitionError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # also for NUL in a path
        raise DefinitionError(f"{shortened(str(path), 300)}: {error}") from error


def looks_like_file(text: str) -> bool:
    """Whether a text cannot be a program, but the name of its file."""
    return _FILE_NAME.fullmatch(text) is not None
