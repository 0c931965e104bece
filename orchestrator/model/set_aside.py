"""The rows of an attempt that did not fit, as its node records them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class SetAside:
    """The rows of one table that are in the quarantine."""

    table: str
    quarantined: int
    place: str  # a location; empty if unknown


def set_aside_in(attempt: Mapping[str, Any]) -> list[SetAside]:
    """The tables of an attempt with rows in its quarantine.

    Its node is untrusted: each value may have any type.
    """
    return list(_of(attempt.get("bad_rows")))


def _of(recorded: object) -> Iterator[SetAside]:
    for item in recorded if isinstance(recorded, list) else ():
        number = item.get("quarantined") if isinstance(item, Mapping) else None
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            yield SetAside(str(item.get("table", "")), number, str(item.get("place", "")))
