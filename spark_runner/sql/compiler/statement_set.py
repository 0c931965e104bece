"""Statement sets: which names their INSERTs share, and that none reads what another one writes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_runner.sql.compiler.names import Name, Reads, Table, View
from spark_runner.sql.grammar.statements import Insert
from spark_runner.sql.overlaps import SetPlaces
from spark_runner.sql.text.passage import Passage

MAX_SHARED_STEPS = 500_000
"""Steps of all searches for shared names of a script: a longer search ends without finding more."""


@dataclass
class OpenSet:
    """A statement set whose END has not come yet."""

    passage: Passage  # where it begins
    step: dict[str, Any]
    is_empty: bool = True  # an INSERT with an error counts, too
    refused_sets: int = 0  # begun inside of this one, and not ended yet
    inserts: list[Reads] = field(default_factory=list)
    places: SetPlaces = field(default_factory=SetPlaces)
    writers: dict[str, int] = field(default_factory=dict)  # lower-case target -> line of its first INSERT

    def add(self, statement: Insert, target: Table, reads: Reads) -> None:
        """Raise SqlError if the INSERT reads what another one of the set writes, or the other way round.

        Every INSERT of a set sees the data from before the set.
        """
        line = statement.passage.position()[0]
        if found := self.places.add(target.placed, reads.placed(), line):
            raise statement.passage.error(found, statement.target_offset)
        if statement.overwrite and (writer := self.writers.get(target.name.lower())) is not None:
            message = (
                f"refused: this INSERT replaces what the INSERT of line {writer} of the same set writes;"
                " write INSERT INTO, or another set"
            )
            raise statement.passage.error(message, statement.target_offset)
        self.writers.setdefault(target.name.lower(), line)
        self.inserts.append(reads)


def shared_names(
    inserts: Sequence[Reads], declared: Sequence[Name], current: Mapping[str, Name], limit: int
) -> tuple[list[str], int]:
    """The names that two or more INSERTs read, directly or through views; and the steps left of `limit`.

    A name below another shared one is left out, unless something else reads it too. In order of declaration.
    """
    if len(inserts) < 2 or any(reads.file_names for reads in inserts):  # noqa: PLR2004 - a single one shares nothing
        return [], limit
    readers = dict[int, set[int]]()  # by the identity of a name: INSERTs and shared names, at most two
    for number, reads in enumerate(inserts):
        _add_readers(readers, reads.names, {number})
    shared = list[str]()
    for name in reversed(declared):  # a view is declared behind what it reads
        if limit <= 0:
            break
        limit -= 1
        found = readers.get(id(name))
        if found is None:
            continue
        is_large = isinstance(name, View) or (isinstance(name, Table) and bool(name.place))
        if len(found) > 1 and is_large and current.get(name.name.lower()) is name:
            shared.append(name.name)
            found = {id(name)}
        if isinstance(name, View):
            limit -= len(name.reads.names)
            _add_readers(readers, name.reads.names, found)
    return shared[::-1], limit


def _add_readers(readers: dict[int, set[int]], names: Iterable[Name], added: set[int]) -> None:
    for name in names:
        known = readers.setdefault(id(name), set())
        if len(known) < 2:  # noqa: PLR2004 - two readers share a name, and more are no difference
            known |= added
