"""The rules by which INSERTs and their input may share locations.

The compiler applies them; the driver does so again for locations with built-in variables.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from spark_runner.sql.locations import contains, overlap
from spark_runner.sql.text.full_name import FullName, KnownNames


class Placed(NamedTuple):
    """A table with its location, and the comparable form of that; both are empty if it has none."""

    name: str
    location: str
    place: str


def refused(target: Placed, reads: Iterable[Placed], kept: Iterable[Placed]) -> str:
    """Why an INSERT that reads `reads` and may not delete `kept` is refused; empty if it may run."""
    if not target.place:
        return ""
    for table in reads:
        if table.place and overlap(target.place, table.place):
            return _destroys(f"reads '{table.name}' from", table, target)
    for table in kept:
        # The same path twice is intended: a later statement reads or extends the output of this one.
        if table.place and contains(target.place, table.place) and not contains(table.place, target.place):
            return _destroys(f"would delete table '{table.name}' in", table, target)
    return ""


def _destroys(what: str, source: Placed, target: Placed) -> str:
    where = (
        "the path it writes to"
        if source.location == target.location
        else f"'{source.location}', which overlaps with its target"
    )
    return f"refused: this INSERT {what} {where} ('{target.location}')"


@dataclass
class SetPlaces:
    """What the INSERTs of a statement set have read and written so far, by place; with the lines."""

    read: dict[str, tuple[str, int]] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)

    def add(self, target: Placed, reads: Iterable[Placed], line: int) -> str:
        """Why an INSERT may not be in the set, as each one sees the data from before the set; or empty."""
        for table in reads:
            if table.place and table.place not in self.read:
                for place, writer in self.written.items():
                    if overlap(place, table.place):
                        return _conflict(
                            f"reads '{table.name}', and the INSERT of line {writer} writes there"
                        )
                self.read[table.place] = table.name, line
        if target.place and target.place not in self.written:
            for place, (name, reader) in self.read.items():
                if overlap(target.place, place):
                    return _conflict(f"writes to what the INSERT of line {reader} reads as '{name}'")
            self.written[target.place] = line
        return ""


@dataclass
class SetCatalogs:
    """The tables of catalogs that they have read and written so far, with the lines."""

    read: KnownNames = field(default_factory=KnownNames)
    written: KnownNames = field(default_factory=KnownNames)
    _readers: dict[tuple[str, ...], int] = field(default_factory=dict)  # by key
    _writers: dict[tuple[str, ...], int] = field(default_factory=dict)

    def add(self, target: FullName | None, reads: Iterable[FullName], line: int, *, replaces: bool) -> str:
        """Likewise, also for an INSERT that replaces what another one writes; `target` may be no such table.

        The current catalog and namespace complete short names, so two names that may be the same count.
        """
        for name in reads:
            if other := self.written.same(name):
                writer = self._writers[other.key]
                return _conflict(
                    f"reads '{name}', and the INSERT of line {writer} writes to {_as(other, name)}"
                )
            self.read.add(name)
            self._readers.setdefault(name.key, line)
        if target is None:
            return ""
        if other := self.read.same(target):
            reader = self._readers[other.key]
            return _conflict(f"writes to what the INSERT of line {reader} reads as '{other}'")
        if replaces and (other := self.written.same(target)):
            return replaces_written(self._writers[other.key])
        self.written.add(target)
        self._writers.setdefault(target.key, line)
        return ""


def replaces_written(line: int) -> str:
    """Why an INSERT OVERWRITE may not be in the set behind an INSERT into its target."""
    return (
        f"refused: this INSERT replaces what the INSERT of line {line} of the same set writes; write INSERT"
        " INTO, or another set"
    )


def _as(other: FullName, name: FullName) -> str:
    return "it" if other.key == name.key else f"'{other}', which may be the same table"


def _conflict(what: str) -> str:
    return f"refused: this INSERT {what}; all INSERTs of a statement set see the data from before the set"
