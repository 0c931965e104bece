"""Job definitions, in YAML and JSON."""

import tempfile
from pathlib import Path

from orchestrator.model.definition import Definition
from orchestrator.model.definition_files import parse_definition
from orchestrator.model.errors import OrchestratorError
from orchestrator.model.plan import compile_program
from spark_runner.sql.text.errors import SqlError
from tests.fuzz.promises import Broken, check_error

_DIRECTORY = Path(tempfile.gettempdir())


def try_input(data: bytes) -> None:
    """A valid definition is compiled, stored and read again; any other has an error for its author."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        definition = parse_definition(text, "job.yaml", _DIRECTORY)
        compile_program(definition)
    except (OrchestratorError, SqlError) as error:
        check_error(error)
        return
    if Definition.model_validate_json(definition.model_dump_json()) != definition:
        raise Broken("the definition has changed")
