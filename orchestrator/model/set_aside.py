"""The rows of an attempt that did not fit, as its node records them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

_OF_INSERT = re.compile(r"(?P<target>.*) \(line (?P<line>[0-9]{1,9})\)", re.DOTALL)


class InsertName(NamedTuple):
    """An INSERT: its target and its line in the script that ran."""

    target: str
    line: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """The rows of one table that are in the quarantine."""

    table: str
    quarantined: int
    place: str  # a location; empty if unknown

    @property
    def insert(self) -> InsertName | None:
        """The INSERT that has set them aside; None for rows of a table that was read."""
        match = _OF_INSERT.fullmatch(self.table)
        return InsertName(match["target"], int(match["line"])) if match else None

    @property
    def described(self) -> str:
        """The table or INSERT, in words."""
        insert = self.insert
        return (
            f"the INSERT into '{insert.target}' of line {insert.line}" if insert else f"table '{self.table}'"
        )


def set_aside_in(attempt: Mapping[str, Any]) -> list[SetAside]:
    """The tables of an attempt with rows in its quarantine.

    Its node is untrusted: each value may have any type.
    """
    found = dict[tuple[str, str], SetAside]()
    for each in _of(attempt.get("bad_rows")):
        # Two INSERTs of one line share a folder.
        before = found.get(key := (each.table, each.place))
        number = each.quarantined + (before.quarantined if before else 0)
        found[key] = SetAside(each.table, number, each.place)
    return list(found.values())


def named(places: Sequence[SetAside], name: str) -> SetAside | None:
    """The rows of a table or INSERT; of the only INSERT into a table, if that has the name."""
    lower = name.lower()
    found = [each for each in places if each.table.lower() == lower]
    found = found or [each for each in places if each.insert and each.insert.target.lower() == lower]
    return found[0] if len(found) == 1 else None


def _of(recorded: object) -> Iterator[SetAside]:
    for item in recorded if isinstance(recorded, list) else ():
        number = item.get("quarantined") if isinstance(item, Mapping) else None
        if isinstance(number, int) and not isinstance(number, bool) and number > 0:
            yield SetAside(str(item.get("table", "")), number, str(item.get("place", "")))
