"""Checks the references in the options of a table, and makes their form for the plan."""

from collections.abc import Mapping
from typing import Any, get_args

from spark_runner.connectors.options import ConnectorOptions, field_names, folded
from spark_runner.references.reference import references_in, to_json
from spark_runner.sql.grammar.statements import CreateTable, Option


def checked_references(
    statement: CreateTable, options: Mapping[str, Option], checked: ConnectorOptions, location: str
) -> dict[str, list[Any]]:
    """The pieces of each option with references, by its name in the plan.

    Raises SqlError for an option that is no text, and for one that is a part of `location`.
    """
    fields = field_names(type(checked))
    found = dict[str, list[Any]]()
    for key, option in options.items():
        if not option.pieces:
            continue
        name = fields.get(folded(key), key)
        first = references_in(option.pieces)[0]
        if str(first) in location:
            message = (
                f"option '{name}' decides where the rows are, which must be known when the job is submitted:"
                f" it cannot hold {first}; use a variable, such as ${{name}}"
            )
            raise statement.passage.error(message, option.value_offset)
        if not _is_text(type(checked), name) or getattr(checked, name) != option.value:
            message = f"option '{name}' is no free text, so it cannot hold the reference {first}"
            raise statement.passage.error(message, option.value_offset)
        found[name] = to_json(option.pieces)
    return found


def _is_text(model: type[ConnectorOptions], name: str) -> bool:
    annotation = model.model_fields[name].annotation
    return annotation is str or str in get_args(annotation)
