"""Names the table whose files have a record that does not fit."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from spark_runner.connectors.files.misfits import misfit
from spark_runner.sql.execution.script_context import ScriptContext
from spark_runner.sql.locations import comparable
from spark_runner.sql.text.errors import SqlError


def unfit_record(script: ScriptContext, error: BaseException, step: Mapping[str, Any]) -> SqlError | None:
    """The error of a record, at the declaration of its table or else at `step`; None for another error."""
    if (found := misfit(error)) is None:
        return None
    file = comparable(unquote(found.file))
    above = dict[str, Mapping[str, Any]]()  # by their places: one may be inside another
    for table in script.tables.values():
        place = comparable(str(table["location"])).rstrip("/") if table["location"] else ""
        if place and (file == place or file.startswith(f"{place}/")):
            above[place] = table
    if not above:
        return script.error(str(found), step)
    table = above[max(above, key=len)]
    return script.error(f"table '{table['name']}': {found}", table)
