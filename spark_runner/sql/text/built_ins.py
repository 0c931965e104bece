"""Variables that every script has, such as `${ds}`: a plan keeps marks, and each attempt replaces them.

A plan is made once, at the submission; a schedule makes one for all its runs.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_OPEN, _CLOSE = "\ue002", "\ue003"  # of Unicode's private use: no text holds them by accident

# The longest value of each. Its mark is as long, so that the limits of texts and paths hold for values too.
_LONGEST = {
    "ds": len("2026-01-31"),
    "ts": len("2026-01-31T23:59:59Z"),
    "fire_time": len("2026-01-31T23:59:59Z"),
    "run_id": 128,  # characters of the id of a job
    "attempt": 10,  # digits
}
BUILT_INS = tuple(_LONGEST)
NUMBERS = frozenset({"attempt"})  # values that are SQL outside of quotes

MARKS = {
    name: f"{_OPEN}{name.ljust(length - len(_OPEN + _CLOSE), '0')}{_CLOSE}"
    for name, length in _LONGEST.items()
}
# Exactly these: other text between the two characters is the user's, and stays as it is.
_MARK = re.compile("|".join(MARKS.values()))
_NAMES = {mark: name for name, mark in MARKS.items()}


def values_of(run_id: str, attempt: int, at: datetime) -> dict[str, str]:
    """The values for one attempt; `at` is the fire time, or the time of the submission."""
    moment = at.astimezone(UTC)
    time = f"{moment:%Y-%m-%dT%H:%M:%S}Z"
    return {
        "ds": time[: _LONGEST["ds"]],
        "ts": time,
        "fire_time": time,
        "run_id": run_id,
        "attempt": str(attempt),
    }


def has_mark(text: str) -> bool:
    """Whether a text of a plan depends on a built-in variable."""
    return _OPEN in text


def readable(text: str) -> str:
    """A text of a plan as the user wrote it, with `${name}` for each mark."""
    return _MARK.sub(lambda mark: f"${{{_NAMES[mark[0]]}}}", text) if _OPEN in text else text


def as_numbers(text: str) -> str:
    """A text of a plan with a number of the same length for each mark, for a parser that knows no marks."""
    return _MARK.sub(lambda mark: "1" * len(mark[0]), text) if _OPEN in text else text


def with_values(part: Any, values: Mapping[str, str]) -> Any:
    """A part of a plan, which is JSON, with values in place of marks; raises KeyError for one without."""
    if isinstance(part, str):
        return _MARK.sub(lambda mark: values[_NAMES[mark[0]]], part) if _OPEN in part else part
    if isinstance(part, list):
        return [with_values(item, values) for item in part]
    if isinstance(part, Mapping):
        return {key: with_values(item, values) for key, item in part.items()}
    return part
