"""The messages of the channel: a JSON object in each line."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from spark_runner.push.errors import PushError

MAX_BYTES = 64 * 1024
"""Of a message of a task; orders may be larger."""


class BadMessage(PushError):
    """What the other side of the channel sent is no message."""


@dataclass(frozen=True, slots=True)
class Join:
    """A task begins, or is there again: the first message of each connection."""

    token: str
    partition: int
    attempt: int
    nonce: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a task has counted since its start, and the version of the orders that it follows.

    After the last one it delivers nothing any more.
    """

    number: int
    version: int
    counts: dict[str, Any] = field(default_factory=dict)
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Received:
    """The driver has the report with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Orders:
    """What a task may use from now on: its share of the limits, and the lanes that are paused.

    `rollbacks` is the number of times that an operator has ordered one.
    """

    version: int
    concurrency: int
    rate: float
    buffer_records: int
    buffer_bytes: int
    paused: list[str] = field(default_factory=list)
    rollbacks: int = 0


@dataclass(frozen=True, slots=True)
class Refused:
    """The driver takes nothing more from this task, which must deliver nothing any more."""

    reason: str


Message = Join | Report | Received | Orders | Refused
_KINDS: Mapping[str, type[Message]] = {
    kind.__name__.lower(): kind for kind in (Join, Report, Received, Orders, Refused)
}
_TYPES: Mapping[Any, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,), bool: (bool,)}


def encode(message: Message) -> bytes:
    """The line of a message."""
    values = {each.name: getattr(message, each.name) for each in fields(message)}
    return json.dumps({"type": type(message).__name__.lower(), **values}).encode() + b"\n"


def decode(line: bytes) -> Message:
    """The message in a line; raises BadMessage."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadMessage("it is no JSON") from error
    kind = _KINDS.get(str(document.pop("type", ""))) if isinstance(document, dict) else None
    if kind is None:
        raise BadMessage("it is no message of a known type")
    known = {each.name: each.type for each in fields(kind)}
    if not document.keys() <= known.keys():
        raise BadMessage(f"a {kind.__name__} has no field '{min(document.keys() - known.keys())}'")
    for name, value in document.items():
        if not _is_valid(known[name], value):
            raise BadMessage(f"field '{name}' of a {kind.__name__} has a wrong value")
    try:
        return kind(**document)
    except TypeError as error:
        raise BadMessage(f"a {kind.__name__} lacks fields") from error


def _is_valid(kind: Any, value: Any) -> bool:
    if kind in _TYPES:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_of_kind = isinstance(value, _TYPES[kind]) and isinstance(value, bool) is (kind is bool)
        return is_of_kind and (not is_number or 0 <= value < float("inf"))
    if kind == list[str]:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, dict)
