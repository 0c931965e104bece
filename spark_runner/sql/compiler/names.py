"""The names that a script declares, as the compiler keeps them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from spark_runner.sql.compiler.tables import TableSpec
from spark_runner.sql.overlaps import Placed
from spark_runner.sql.text.full_name import FullName
from spark_runner.sql.text.passage import Passage


@dataclass
class Name:
    """A declared name, at the offset `name_offset` of `passage`; `uses` counts reads and writes."""

    name: str
    passage: Passage
    name_offset: int
    uses: int = 0

    @property
    def line(self) -> int:
        """The line of the declaration."""
        return self.passage.position()[0]


@dataclass
class Invalid(Name):
    """A name whose declaration has an error: the statements that use it are not checked against it."""


@dataclass
class Table(Name):
    """A table; `step` is its entry in the plan, completed as its uses are found."""

    spec: TableSpec = field(kw_only=True)
    step: dict[str, Any] = field(kw_only=True)
    place: str = field(kw_only=True)  # its comparable location; empty if it has none
    number: int = field(kw_only=True)  # the index of its step
    stored: tuple[str, ...] = field(kw_only=True)  # its declared columns; empty if it declares none

    @property
    def placed(self) -> Placed:
        """The table with its location."""
        return Placed.of(self.name, self.spec.location, self.place, self.spec.options)


@dataclass
class Reads:
    """The tables that a query reads, also through views, each once and in order; and the number of reads."""

    tables: dict[int, Table] = field(default_factory=dict)  # by identity: a name may be declared again
    names: list[Name] = field(default_factory=list)  # tables and views that its text names, each once
    catalogs: dict[tuple[str, ...], FullName] = field(default_factory=dict)  # tables of catalogs, by key
    file_names: bool = False  # it may compute the names of its input files
    has_invalid: bool = False  # a declaration that it reads has an error
    times: int = 0
    depth: int = 0  # of nested views

    def placed(self) -> Iterator[Placed]:
        """The tables with their locations."""
        return (table.placed for table in self.tables.values())


@dataclass
class View(Name):
    """A view and the tables that it reads."""

    reads: Reads = field(kw_only=True)
