"""A commented file of settings: each with its description and its default, made from the models."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from orchestrator.config.settings import Settings
from orchestrator.config.tables import ALL_POOLS
from orchestrator.model.fields import format_seconds, is_duration

_WIDTH = 98
_FOLDER = "/etc/spark-job-orchestrator"  # of files in examples
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_HEAD = """\
# Settings of spark-job-orchestrator, in TOML. docs/reference.md explains them.
#
# A line that begins with `#` and a name is a setting with its default, or with an example where its
# comment says so: remove the `#`, and change the value. A field of a table has the table in its name, as
# in `logs.url`. `"*"` stands for all pools: the name of a pool in its place is for that pool alone.
#
# The environment wins over this file: ORCHESTRATOR_<NAME>, or ORCHESTRATOR_<TABLE>__<FIELD>.
# `orchestrator config show` shows the values in force and their origins.
# Secrets do not belong here: settings name the files that contain them.
"""


def render() -> str:
    """The text of the file; while no line is edited, it changes nothing."""
    return "\n".join([_HEAD, *("\n".join(_setting(*item)) + "\n" for item in Settings.model_fields.items())])


def _setting(name: str, field: FieldInfo) -> Iterator[str]:
    """The description of a setting and the lines that set it; for a table, those of its fields."""
    model, key = _table(field)
    if model is None:
        yield from _value(name, field)
        return
    yield from _comment(f"{name}: {field.description}", "##")
    for inner_name, inner in model.model_fields.items():
        yield from _setting(f"{name}{key}.{inner_name}", inner)


def _table(field: FieldInfo) -> tuple[type[BaseModel] | None, str]:
    """The model of a table, and the key that stands for any entry of a table of tables; None for a value."""
    candidates = (field.annotation, *get_args(field.annotation))
    model = next(
        (each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)), None
    )
    if get_origin(field.annotation) is not dict:
        return model, ""
    is_by_pool = (field.description or "").startswith("by pool")
    return model, f".{_key(ALL_POOLS)}" if is_by_pool else ".NAME"


def _value(name: str, field: FieldInfo) -> Iterator[str]:
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    has_default = default is not None and default != {}
    value = default if has_default else _example(name, field)
    note = "" if has_default else " (example)"
    if has_default and field.default_factory is not None:
        note = " (the default of this host)"
    yield from _comment(f"{field.description}{note}")
    if is_duration(field) and isinstance(value, float):
        value = format_seconds(value)
    for key, inner in _leaves(name, value):
        yield f"#{key} = {_toml(inner)}"


def _example(name: str, field: FieldInfo) -> Any:
    if field.examples:
        return field.examples[0]
    last = name.rpartition(".")[2]
    return f"{_FOLDER}/{last.removesuffix('_file')}" if last.endswith("_file") else ["*"]  # patterns


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, inner in value.items():
        yield from _leaves(f"{name}.{_key(key)}", inner)


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name)


def _toml(value: Any) -> str:
    match value:
        case Enum():
            return _toml(value.value)
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"[{', '.join(map(_toml, value))}]"
        case str() | Path():  # a JSON string is a basic string of TOML
            return json.dumps(str(value), ensure_ascii=False)
        case _:
            return str(value)


def _comment(words: str, mark: str = "#") -> list[str]:
    return [f"{mark} {line}" for line in textwrap.wrap(words, _WIDTH, break_long_words=False)]
