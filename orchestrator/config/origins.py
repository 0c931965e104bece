"""The origin of each setting of this process."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.config.settings import Settings, config_file, file_settings
from orchestrator.config.sources import from_environment, names
from orchestrator.logs.record.redaction import REDACTOR, masked


class Origin(StrEnum):
    """The kind of source of a setting."""

    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"
    ZOOKEEPER = "ZooKeeper"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting in force, and its origin."""

    name: str
    value: Any  # as in JSON, secrets masked
    origin: Origin
    place: str = ""  # the variable, the file or the node


def local_settings(settings: Settings) -> list[Setting]:
    """Every setting of this process; a field of a table by itself, as `table.field`.

    Flags are not included: they belong to one command, and win over all of these.
    """
    # In the order of `load_settings`.
    sources: list[tuple[Origin, Mapping[str, Any]]] = [
        (Origin.ENVIRONMENT, from_environment(Settings, os.environ)),
        (Origin.FILE, file_settings()),
    ]
    return [
        _setting(path, value, sources)
        for path, value in _leaves(settings.model_dump(mode="json"))  # masks a SecretStr
    ]


def _leaves(
    document: Mapping[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in document.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _setting(
    path: tuple[str, ...], value: Any, sources: Sequence[tuple[Origin, Mapping[str, Any]]]
) -> Setting:
    name = ".".join(path)
    value = _shown(path[-1], value)
    for origin, document in sources:
        if _has(document, path):
            place = _variable(path) if origin is Origin.ENVIRONMENT else str(config_file())
            return Setting(name, value, origin, place)
    return Setting(name, value, Origin.DEFAULT)


def _shown(name: str, value: Any) -> Any:
    """The value without secrets, which are found by the name of the setting and in addresses."""
    if isinstance(value, str) and value.strip("*"):
        return masked({name: value})[name] if not name.endswith(("_file", "_dir")) else value
    return REDACTOR.document(value)


def _has(document: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    found: Any = document
    for name in path:
        if not isinstance(found, Mapping):
            return True  # a text that stands for a table, such as that of `checkpoints`
        if name not in found:
            return False
        found = found[name]
    return True


def variables(path: Sequence[str]) -> list[str]:
    """The environment variables that set a value, in order of precedence."""
    tops = names(Settings, path[0])
    parts = [part.upper() for part in path[1:]]
    # A table can be set as a whole, as JSON, or field by field.
    return ["__".join([top, *parts[:depth]]) for top in tops for depth in range(len(parts), -1, -1)]


def _variable(path: tuple[str, ...]) -> str:
    present = {name.upper() for name in os.environ}  # case-insensitive
    return next((name for name in variables(path) if name in present), "")
