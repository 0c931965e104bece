"""From a definition to what a driver executes."""

import ast
from typing import Any

from orchestrator.errors import DefinitionError
from orchestrator.models.definition import Definition
from spark_runner.sql.compile import compile_script


def compile_program(definition: Definition) -> dict[str, Any]:
    """The plan of the definition's program; raises SqlError or DefinitionError with the place in it."""
    if definition.python:
        file = definition.file or f"{definition.name}.py"
        try:
            ast.parse(definition.python, file)
        except SyntaxError as error:
            place = f"{file}:{error.lineno}:{error.offset}"
            raise DefinitionError(f"{place}: {error.msg}\n  {(error.text or '').rstrip()}") from error
        except ValueError as error:
            raise DefinitionError(f"{file}: {error}") from error
        return {
            "python": {
                "file": file,
                "text": definition.python,
                "arguments": list(definition.arguments),
            },
            "directory": definition.directory,
        }
    if definition.jar:
        jar = {"class": definition.main_class, "arguments": list(definition.arguments)}
        return {"jar": jar, "directory": definition.directory}
    return {
        "directory": definition.directory,
        "sql": compile_script(
            definition.script,
            file=definition.file or f"{definition.name}.sql",
            base_dir=definition.directory,
            variables=definition.variables,
        ),
    }
