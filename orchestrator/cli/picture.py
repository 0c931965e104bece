"""Pictures that commands write into files."""

from pathlib import Path

from orchestrator.logs.files import replace_file
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.visible import visible
from orchestrator.model.errors import DefinitionError


def save_picture(svg: str, file: Path) -> None:
    """Replace a file of `--svg` at once, with secrets masked; a link is replaced, and not followed.

    Raises DefinitionError if the file cannot be written.
    """
    try:
        replace_file(file, visible(REDACTOR.mask(svg)).encode("utf-8", "replace"), mode=None)
    except ValueError as error:
        raise DefinitionError(f"--svg: {error}") from error
    except OSError as error:
        raise DefinitionError(f"--svg {file}: cannot be written: {error.strerror}") from error
