"""The rules by which INSERTs and their input may share locations.

The compiler applies them; the driver does so again for locations with built-in variables.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_runner.sql.locations import contains, overlap
from spark_runner.sql.text.full_name import FullName, KnownNames


class Placed(NamedTuple):
    """A table with its location, and the comparable form of that; both are empty if it has none."""

    name: str
    location: str
    place: str
    mark: str = ""  # of the rows that are written to it
    skipped: frozenset[str] = frozenset()  # marks of rows that are not read from it

    @classmethod
    def of(cls, name: str, location: str, place: str, options: Mapping[str, Any]) -> "Placed":
        """A table with these options of a plan."""
        skipped = options.get("skip_mark", ())  # of another connector, it may be anything
        marks = frozenset(map(str, skipped)) if isinstance(skipped, list | tuple) else frozenset[str]()
        return cls(name, location, place, str(options.get("mark", "")), marks)

    def passes_over(self, target: "Placed") -> bool:
        """Whether a query that reads it leaves out what is written to the target."""
        return bool(target.mark) and target.mark in self.skipped

    def gets_rows_of(self, target: "Placed") -> bool:
        """Whether a query that reads it may read what is written to the target."""
        return bool(self.place) and overlap(target.place, self.place) and not self.passes_over(target)


def refused(target: Placed, reads: Iterable[Placed], kept: Iterable[Placed]) -> str:
    """Why an INSERT that reads `reads` and may not delete `kept` is refused; empty if it may run."""
    if not target.place:
        return ""
    for table in reads:
        if table.gets_rows_of(target):
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
    """What the INSERTs of a statement set have read and written so far, with the lines."""

    read: dict[Placed, int] = field(default_factory=dict)
    written: dict[Placed, int] = field(default_factory=dict)

    def add(self, target: Placed, reads: Iterable[Placed], line: int) -> str:
        """Why an INSERT may not be in the set, as each one sees the data from before the set; or empty."""
        for table in reads:
            if table.place and table not in self.read:
                for written, writer in self.written.items():
                    if table.gets_rows_of(written):
                        return _conflict(
                            f"reads '{table.name}', and the INSERT of line {writer} writes there"
                        )
                self.read[table] = line
        if target.place and target not in self.written:
            for table, reader in self.read.items():
                if table.gets_rows_of(target):
                    return _conflict(f"writes to what the INSERT of line {reader} reads as '{table.name}'")
            self.written[target] = line
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
