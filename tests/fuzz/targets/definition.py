"""Job definitions, in YAML and JSON."""

import tempfile
from pathlib import Path

from orchestrator.errors import OrchestratorError
from orchestrator.models.definition import Definition, parse_definition
from tests.fuzz.promises import Broken, check_error

_DIRECTORY = Path(tempfile.gettempdir())


def try_input(data: bytes) -> None:
    """A definition that is read can be stored and read again; each other one has an error for its author."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        definition = parse_definition(text, "job.yaml", _DIRECTORY)
    except OrchestratorError as error:
        check_error(error)
        return
    if Definition.model_validate_json(definition.model_dump_json()) != definition:
        raise Broken("another definition comes back")
