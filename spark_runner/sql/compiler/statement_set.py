"""Statement sets: which names their INSERTs share, and that none reads what another one writes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_runner.sql.compiler.names import Name, Reads, Table, View
from spark_runner.sql.compiler.scope import Scope
from spark_runner.sql.compiler.steps import Steps
from spark_runner.sql.compiler.stream_queries import check_in_set
from spark_runner.sql.grammar.missing_ends import missing_before_end
from spark_runner.sql.grammar.statement_set import NO_INSERT, ONLY_INSERTS, count_begun
from spark_runner.sql.grammar.statements import (
    CATALOG_INSERTS,
    AnyStatement,
    BeginSet,
    CatalogAction,
    CatalogStatement,
    EndSet,
    Insert,
)
from spark_runner.sql.overlaps import Placed, SetCatalogs, SetPlaces, replaces_written
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.full_name import FullName
from spark_runner.sql.text.passage import Passage

MAX_SHARED_STEPS = 500_000
"""Steps of all searches for shared names of a script: a longer search ends without finding more."""


@dataclass
class OpenSet:
    """A statement set whose END has not come yet."""

    passage: Passage  # where it begins
    step: dict[str, Any]
    is_empty: bool  # an INSERT with an error counts, too
    last: AnyStatement | None = None  # its last INSERT so far
    refused_sets: int = 0  # begun inside of this one, and not ended yet
    inserts: list[Reads] = field(default_factory=list)
    places: SetPlaces = field(default_factory=SetPlaces)
    catalogs: SetCatalogs = field(default_factory=SetCatalogs)
    stream: Table | None = None  # in a mode that streams: what all INSERTs read
    writers: dict[str, int] = field(default_factory=dict)  # lower-case target -> line of its first INSERT

    def add(self, statement: Insert, target: Table, reads: Reads) -> None:
        """Raise SqlError if the INSERT reads what another one of the set writes, or the other way round.

        Every INSERT of a set sees the data from before the set.
        """
        line = statement.passage.position()[0]
        found = self.places.add(target.placed, reads.placed(), line)
        found = found or self.catalogs.add(None, reads.catalogs.values(), line, replaces=False)
        if (
            not found
            and statement.overwrite
            and (writer := self.writers.get(target.name.lower())) is not None
        ):
            found = replaces_written(writer)
        if found:
            raise statement.passage.error(found, statement.target_offset)
        self.writers.setdefault(target.name.lower(), line)
        self.inserts.append(reads)

    def add_catalog(self, statement: CatalogStatement, target: FullName, reads: Reads) -> None:
        """Likewise for an INSERT into a table of a catalog."""
        line = statement.passage.position()[0]
        replaces = statement.action is CatalogAction.INSERT_OVERWRITE
        found = self.places.add(Placed("", "", ""), reads.placed(), line)
        found = found or self.catalogs.add(target, reads.catalogs.values(), line, replaces=replaces)
        if found:
            raise statement.passage.error(found, target.offset)
        self.inserts.append(reads)

    def read_stream(self, query: Passage, reads: Reads, mode: str) -> None:
        """Keep the stream that an INSERT reads; raises SqlError for another one, and for what has a state."""
        self.stream = check_in_set(query, reads, self.stream, mode)


@dataclass
class StatementSets:
    """The statement sets of a script, one after another."""

    steps: Steps
    scope: Scope
    open: OpenSet | None = None
    _shared_steps: int = MAX_SHARED_STEPS

    def follow(self, statement: AnyStatement) -> None:
        """Follow a statement while a set is open; raises SqlError for one that no set may have."""
        if not self.open or isinstance(statement, BeginSet | EndSet):
            return
        action = statement.action if isinstance(statement, CatalogStatement) else None
        if isinstance(statement, Insert) or action in CATALOG_INSERTS:
            self.open.is_empty, self.open.last = False, statement
            return
        self._check_ended(self.open)
        if action and action.writes:
            message = f"{ONLY_INSERTS}: {action} reads the table that it changes"
            raise statement.passage.error(f"{message}; write it behind END")
        raise statement.passage.error(f"{ONLY_INSERTS}; write END; before this statement")

    def begin(self, statement: BeginSet) -> None:
        """Open a set; raises SqlError while another one is open."""
        if self.open:
            self._check_ended(self.open)
            raise statement.passage.error(f"{ONLY_INSERTS}; write END; before a further set")
        step = self.steps.add("begin_set", statement.passage, cached=[])
        self.open = OpenSet(statement.passage, step, is_empty=statement.first is None, last=statement)

    def end(self, statement: EndSet) -> None:
        """Close the set; raises SqlError without one, and for one without an INSERT."""
        ended = self.open
        if ended is None:
            raise statement.passage.error("this END has no statement set; write EXECUTE STATEMENT SET BEGIN")
        if ended.refused_sets:
            ended.refused_sets -= 1
            return
        self.open = None
        if ended.is_empty:
            raise ended.passage.error(NO_INSERT)
        if ended.stream:
            ended.step["stream"] = ended.stream.step["name"]
        ended.step["cached"], self._shared_steps = shared_names(
            ended.inserts, self.scope.declared, self.scope.names, self._shared_steps
        )
        self.steps.add("end_set", statement.passage)

    def follow_invalid(self, passage: Passage) -> None:
        """Follow the begin or the end of a set in a statement with an error."""
        cursor = Cursor(passage)
        cursor.take_words("EXPLAIN")
        begun, known = count_begun(cursor), self.open
        if known is None:
            if begun and not cursor.take_words("END"):
                self.open = OpenSet(passage, {}, is_empty=False, refused_sets=begun - 1)
            return
        known.is_empty = False
        if known.passage is not passage:
            known.refused_sets += begun
        if cursor.take_words("END"):
            self.open = None

    def finish(self) -> None:
        """Raise SqlError if a set is open at the end of the script."""
        if self.open:
            self._check_ended(self.open)
            message = "this statement set has no end; write END; behind its last INSERT"
            raise self.open.passage.error(message)

    def _check_ended(self, known: OpenSet) -> None:
        """Raise SqlError, and close the set, if its last INSERT has taken its END for the name of a table."""
        last = known.last
        if last is not None and (offset := missing_before_end(last.tokens)) is not None:
            self.open = None
            raise last.passage.error("missing ';' before END", offset)


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
