"""What a script may do in a mode that reads its tables in micro-batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from spark_runner.sql.compiler.modes import STREAMING
from spark_runner.sql.compiler.names import Reads, Table
from spark_runner.sql.compiler.stream_queries import check_clauses
from spark_runner.sql.compiler.tables import TableSpec
from spark_runner.sql.compiler.watermarks import delay_of
from spark_runner.sql.grammar.distinct_counts import with_collected_sets
from spark_runner.sql.grammar.statements import (
    AnyStatement,
    BeginSet,
    CatalogAction,
    CatalogStatement,
    CreateFunction,
    CreateTable,
    CreateView,
    EndSet,
    Insert,
    ResetStatement,
    SetStatement,
)
from spark_runner.sql.overlaps import Placed
from spark_runner.sql.text.built_ins import has_mark
from spark_runner.sql.text.full_name import FullName, KnownNames
from spark_runner.sql.text.passage import Passage

_STATEMENTS = (
    *(SetStatement, ResetStatement, CreateTable, CreateView, CreateFunction, Insert, BeginSet, EndSet),
)
_OF_CATALOGS = frozenset(
    {CatalogAction.INSERT_INTO, CatalogAction.CREATE_TABLE, CatalogAction.CREATE_NAMESPACE}
)


S = TypeVar("S", bound=AnyStatement)


def for_stream(statement: S) -> S:
    """The statement with queries that Spark can run on streams."""
    if isinstance(statement, CreateView | Insert):
        return replace(statement, query=with_collected_sets(statement.query))
    if isinstance(statement, BeginSet) and statement.first:
        return replace(statement, first=for_stream(statement.first))
    return statement


@dataclass
class Streams:
    """The places that the streams of a script read and write, for the checks of further INSERTs."""

    mode: str
    read: dict[str, set[Placed]] = field(default_factory=dict)  # comparable place -> tables
    written: dict[str, set[Placed]] = field(default_factory=dict)  # comparable place -> tables
    read_whole: dict[str, str] = field(default_factory=dict)  # place -> name, of tables that do not stream
    catalogs_read: KnownNames = field(default_factory=KnownNames)
    catalogs_written: KnownNames = field(default_factory=KnownNames)

    def check_statement(self, statement: AnyStatement) -> None:
        """Raise SqlError for a statement that reads all rows of a table."""
        if isinstance(statement, CatalogStatement) and _may_run(statement):
            return
        if isinstance(statement, CatalogStatement) and statement.action.writes:
            message = (
                f"in mode '{self.mode}' a script adds rows to tables of catalogs, by INSERT INTO; use mode"
                " 'batch' for other changes"
            )
            raise statement.passage.error(message)
        if not isinstance(statement, _STATEMENTS):
            raise statement.passage.error(
                f"a script in mode '{self.mode}' has SET, CREATE and INSERT alone; put this statement into a"
                " script in mode 'batch'"
            )

    def of_table(self, statement: CreateTable, spec: TableSpec) -> dict[str, Any]:
        """The part of a table in the plan; raises SqlError for a watermark that has no effect."""
        columns = statement.columns
        if not spec.streams:
            return {}
        return {"stream": True, **(delay_of(columns) if columns else {})}

    def check_bad_rows(self, table: Table, passage: Passage) -> None:
        """Raise SqlError if an INSERT reads the table for rows that do not fit."""
        place = table.place
        if table.step["read"] or (place and (place in self.read or place in self.read_whole)):
            message = (
                f"table '{table.name}' takes the rows that do not fit, and in mode '{self.mode}' no INSERT of"
                " the same script can read it; use two jobs"
            )
            raise passage.error(message)

    def check_insert(self, statement: Insert, target: Table, reads: Reads) -> None:
        """Raise SqlError for an INSERT that cannot be one streaming query with each row written once."""
        passage, offset = statement.passage, statement.target_offset
        if statement.overwrite:
            message = f"INSERT OVERWRITE replaces all rows; in mode '{self.mode}' write INSERT INTO"
            raise passage.error(message, offset)
        if target.spec.batch_only:
            message = (
                f"connector '{target.spec.connector}' of table '{target.name}' cannot be written in mode"
                f" '{self.mode}': {target.spec.batch_only}; use mode 'batch'"
            )
            raise passage.error(message, offset)
        streams = self._streams(statement.query, reads, passage, offset)
        if not streams:
            return
        self._check_places((*streams, target), passage, offset)
        if self.mode == STREAMING:
            self._check_together(target, reads, passage, offset)
            self._check_catalogs(None, reads, passage, offset)
        self._check_own(streams, target, passage, offset)

    def check_catalog_insert(self, query: Passage, target: FullName, reads: Reads, passage: Passage) -> None:
        """Likewise for an INSERT into a table of a catalog."""
        streams = self._streams(query, reads, passage, target.offset)
        self._check_places(streams, passage, target.offset)
        if self.mode == STREAMING:
            self._check_catalogs(target, reads, passage, target.offset)
        both = [table.name for table in streams if self._reads_own(table.placed)]
        self._refuse_own(both, passage, target.offset)

    def _check_catalogs(self, target: FullName | None, reads: Reads, passage: Passage, offset: int) -> None:
        """Raise SqlError for a table of a catalog that INSERTs read and write at the same time."""
        pairs = [(name, self.catalogs_written.same(name)) for name in reads.catalogs.values()]
        for name, _ in pairs:
            self.catalogs_read.add(name)
        if target is not None:
            pairs.append((target, self.catalogs_read.same(target)))
            self.catalogs_written.add(target)
        for name, other in pairs:
            if other is not None:
                means = "" if other.key == name.key else f", which may be '{other}',"
                message = (
                    f"table '{name}'{means} is read as a whole and written by the same script, and in mode"
                    f" '{self.mode}' both happen at the same time; use two jobs"
                )
                raise passage.error(message, offset)

    def _streams(self, query: Passage, reads: Reads, passage: Passage, offset: int) -> list[Table]:
        """The streams that an INSERT reads; raises SqlError for what cannot stream, and for none of them."""
        streams = [table for table in reads.tables.values() if table.spec.streams]
        for table in reads.tables.values():
            _check_table(table, self.mode)
        if not streams and not reads.has_invalid:
            message = f"this INSERT reads no table that streams, which mode '{self.mode}' needs"
            raise passage.error(f"{message}; use mode 'batch'", offset)
        if streams and not reads.has_invalid:
            check_clauses(query, streams, self.mode)
        return streams

    def _check_own(self, streams: Sequence[Table], target: Table, passage: Passage, offset: int) -> None:
        """Raise SqlError for an INSERT that reads what the script writes, or the other way round."""
        written = target.placed
        self.written.setdefault(target.place, set()).add(written)
        both = [table.name for table in streams if self._reads_own(table.placed)]
        if target.place:
            both += [each.name for each in self.read.get(target.place, ()) if not each.passes_over(written)]
        self._refuse_own(both, passage, offset)

    def _reads_own(self, table: Placed) -> bool:
        """Keep that a stream reads this table; returns whether it gets rows that the script has written."""
        self.read.setdefault(table.place, set()).add(table)
        written = self.written.get(table.place, ()) if table.place else ()
        return not all(table.passes_over(each) for each in written)

    def _refuse_own(self, both: Sequence[str], passage: Passage, offset: int) -> None:
        if both:
            message = (
                f"table '{both[0]}' is read as a stream and written by the same script, where a"
                " repeated micro-batch would be read twice; use two jobs, or option streaming 'false'"
            )
            raise passage.error(message, offset)

    def _check_places(self, tables: Iterable[Table], passage: Passage, offset: int) -> None:
        """Raise SqlError for a place that each run has anew, where a run goes on with what others began."""
        found = next((table.name for table in tables if has_mark(table.spec.location)), None)
        if found is not None:
            message = (
                f"the path of table '{found}' has a built-in variable, and in mode '{self.mode}' each run"
                " goes on with the table of the run before; use a path that stays, or mode 'batch'"
            )
            raise passage.error(message, offset)

    def _check_together(self, target: Table, reads: Reads, passage: Passage, offset: int) -> None:
        """Raise SqlError for an INSERT whose meaning depends on another one that runs at the same time."""
        whole = {table.place: table.name for table in reads.tables.values() if not table.spec.streams}
        self.read_whole |= {place: name for place, name in whole.items() if place}
        if target.place and target.place in self.written and target.spec.options.get("mode") == "error":
            message = (
                f"table '{target.name}' has option mode 'error', and in mode '{self.mode}' two INSERTs write"
                " to it at the same time; use mode 'append', or one INSERT with UNION ALL"
            )
            raise passage.error(message, offset)
        written = {*self.written, target.place}
        both = [name for place, name in self.read_whole.items() if place in written]
        if both:
            message = (
                f"table '{both[0]}' is read as a whole and written by the same script, and in mode"
                f" '{self.mode}' both happen at the same time; use two jobs"
            )
            raise passage.error(message, offset)


def _may_run(statement: CatalogStatement) -> bool:
    return statement.action in _OF_CATALOGS and not statement.replace


def _check_table(table: Table, mode: str) -> None:
    connector, at = table.spec.connector, table.name_offset
    if not (table.spec.streams or table.spec.may_be_static):
        message = f"connector '{connector}' of table '{table.name}' cannot stream; use mode 'batch'"
        raise table.passage.error(message, at)
    if table.spec.streams and not table.stored:
        message = f"table '{table.name}' needs declared columns in mode '{mode}': new rows decide nothing"
        raise table.passage.error(message, at)
