"""The sample of a stream that runs: its measurements so far and its settings, as its driver shows them."""

import math
import re
from collections.abc import Mapping
from typing import Any

from queues import encode
from spark_runner.protocol.sizing import MAX_VALUE_CHARACTERS, SIZING

MAX_SAMPLE_BYTES = 1_500
"""Limit of the metrics as JSON, and of the settings."""

_NAME = re.compile(r"[a-z_]{1,40}")
_LARGEST = 2**63 - 1
_GROUPS = ("driver", "executors")


def sample_of(document: Mapping[str, Any] | None) -> dict[str, Any]:
    """`metrics` and `settings` in the progress of a driver, each only if it is valid and small.

    Only numbers by name count as metrics: the driver is the user's, and may write anything.
    """
    sample = (document or {}).get("sample")
    if not isinstance(sample, Mapping):
        return {}
    metrics = _numbers(sample.get("metrics"))
    for group in _GROUPS:
        if found := _numbers(_part(sample.get("metrics"), group)):
            metrics[group] = found
    given = sample.get("settings")
    settings = {name: _part(given, name) for name in SIZING if _is_setting(_part(given, name))}
    found = {"metrics": metrics, "settings": settings}
    return {name: part for name, part in found.items() if part and len(encode(part)) <= MAX_SAMPLE_BYTES}


def _part(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, Mapping) else None


def _numbers(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    return {name: each for name, each in value.items() if _NAME.fullmatch(str(name)) and _is_number(each)}


def _is_number(value: object) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    return type(value) is int and abs(value) <= _LARGEST


def _is_setting(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_VALUE_CHARACTERS
