"""The columns of a table, view or query, as far as they are known."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

MAX_COLUMNS = 2_000  # of one relation; views that join views double them
MAX_ORIGINS = 50  # of one column; more are not traced


class Origin(NamedTuple):
    """A column of a table of the script."""

    table: str
    column: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The columns that a value is made of; not `is_complete` if there may be more."""

    origins: frozenset[Origin] = frozenset()
    is_complete: bool = True

    @staticmethod
    def of(traces: Iterable["Trace"]) -> "Trace":
        """The trace of a value that is made of several."""
        origins, is_complete = set[Origin](), True
        for trace in traces:
            is_complete = is_complete and trace.is_complete
            if len(origins) <= MAX_ORIGINS:
                origins |= trace.origins
        if len(origins) > MAX_ORIGINS:
            return Trace(frozenset(sorted(origins)[:MAX_ORIGINS]), is_complete=False)
        return Trace(frozenset(origins), is_complete)


UNTRACED = Trace(is_complete=False)


@dataclass(frozen=True, slots=True)
class Column:
    """One column; the name is None where Spark makes it from an expression."""

    name: str | None
    trace: Trace = UNTRACED


@dataclass(frozen=True)
class Relation:
    """Columns in order; None if they are not known."""

    columns: tuple[Column, ...] | None

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """The indices of each name, in lower case."""
        found = dict[str, list[int]]()
        for index, column in enumerate(self.columns or ()):
            if column.name is not None:
                found.setdefault(column.name.lower(), []).append(index)
        return found

    @cached_property
    def is_open(self) -> bool:
        """Whether it may have columns with names that are not known."""
        return self.columns is None or any(column.name is None for column in self.columns)

    @property
    def names(self) -> list[str]:
        """The names that are known."""
        return [column.name for column in self.columns or () if column.name is not None]

    def found(self, name: str) -> list[Column]:
        """The columns of a name in lower case."""
        columns = self.columns or ()
        return [columns[index] for index in self.places.get(name, ())]

    def renamed(self, names: Sequence[str]) -> "Relation":
        """The same columns as AS alias (names) calls them."""
        if self.columns is None:
            return Relation(tuple(Column(name) for name in names))
        if len(names) != len(self.columns):
            return UNKNOWN
        return Relation(
            tuple(Column(name, column.trace) for name, column in zip(names, self.columns, strict=True))
        )


UNKNOWN = Relation(None)


def relation(columns: Sequence[Column]) -> Relation:
    """The relation of these columns; unknown if there are too many."""
    return Relation(tuple(columns)) if len(columns) <= MAX_COLUMNS else UNKNOWN
