"""The fields of a model from environment variables and from a TOML file."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import AliasChoices, BaseModel

from spark_runner.protocol.plain_file import read_plain

PREFIX = "ORCHESTRATOR_"
_DELIMITER = "__"
_MAX_BYTES = 1024 * 1024


def from_environment(model: type[BaseModel], environment: Mapping[str, str]) -> dict[str, Any]:
    """The fields that variables set, in any case: a table as JSON, or its fields one by one, which win.

    A table that is not JSON stays text, which its validation rejects.
    """
    given = {name.upper(): value for name, value in environment.items()}
    found: dict[str, Any] = {}
    for field, info in model.model_fields.items():
        is_table = any(
            isinstance(part, type) and issubclass(part, BaseModel)
            for part in (info.annotation, *get_args(info.annotation))
        )
        for variable in reversed([name.upper() for name in names(model, field)]):  # the first name wins
            if variable in given:
                found[field] = _table(given[variable]) if is_table else given[variable]
            parts = _parts(f"{variable}{_DELIMITER}", given) if is_table else {}
            if parts and isinstance(found.setdefault(field, {}), Mapping):
                found[field] = merged(parts, found[field])
    return found


def from_file(model: type[BaseModel], path: Path, *, required: bool = False) -> dict[str, Any]:
    """The document of a TOML file; empty when there is no file, unless it is `required`.

    Raises ValueError for a file that is not TOML, OSError for a path that cannot be read or is not a file.
    """
    if str(path) == os.devnull:  # the usual way to disable a file
        return {}
    try:
        text = read_plain(path, _MAX_BYTES).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        if required:
            raise
        return {}
    if not text:
        return {}
    import tomllib  # noqa: PLC0415 - lazy: each command reads settings, few have a file

    try:
        document = tomllib.loads(text)
    except RecursionError:
        message = "it is nested too deeply"
        raise ValueError(message) from None
    for field in model.model_fields:
        for name in names(model, field):
            if name in document:
                document.setdefault(field, document.pop(name))
    return document


def names(model: type[BaseModel], field: str) -> list[str]:
    """The variables that set a field, in order of precedence."""
    alias = model.model_fields[field].validation_alias
    if isinstance(alias, AliasChoices):
        return [str(choice) for choice in alias.choices]
    return [PREFIX + field.upper()]


def merged(above: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """Both documents, table by table; `above` wins."""
    result = dict(below)
    for name, value in above.items():
        under = result.get(name)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            result[name] = merged(value, under)
        else:
            result[name] = value
    return result


def _table(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _parts(prefix: str, given: Mapping[str, str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for variable, value in sorted(given.items()):  # sorted, so that a field follows its table and wins
        if variable.startswith(prefix):
            *above, last = variable.removeprefix(prefix).lower().split(_DELIMITER)
            table = result
            for name in above:
                if not isinstance(table.get(name), dict):
                    table[name] = {}
                table = table[name]
            table[last] = value
    return result
