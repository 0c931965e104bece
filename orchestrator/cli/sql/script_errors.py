"""The errors of a script that are found without Spark: in its statements, and in columns of queries."""

from orchestrator.model.definition import Definition
from orchestrator.model.plan import check_sql
from orchestrator.sql.columns.check import column_errors
from spark_runner.sql.compiler.compile import MAX_ERRORS, Check
from spark_runner.sql.compiler.connections import FindConnection
from spark_runner.sql.text.errors import SqlError


def script_errors(checked: Check, definition: Definition) -> list[SqlError]:
    """The errors of a checked script, in the order of its lines, with those of columns."""
    errors = [*checked.errors, *column_errors(checked, definition.spark.conf)]
    return sorted(errors, key=lambda error: (error.line, error.column))[:MAX_ERRORS]


def refuse_script_errors(definition: Definition, name: str, connections: FindConnection | None) -> None:
    """Raise SqlError with all errors of the script of a definition, if it has any; they call it `name`."""
    raise_all(script_errors(check_sql(definition, name, connections), definition))


def raise_all(errors: list[SqlError]) -> None:
    """Raise the first of the errors, with the others."""
    if errors:
        raise Check(None, tuple(errors)).error()
