"""The names that a script has declared so far, and their uses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.compiler.names import Invalid, Name, Reads, Table, View
from spark_runner.sql.grammar.references import (
    computes_names,
    formats_named,
    hides_names,
    names_relative_files,
    reads_file_names,
    table_names,
)
from spark_runner.sql.grammar.statements import Cache, CreateTable, CreateView, Insert, Uncache
from spark_runner.sql.text.built_ins import has_mark
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.full_name import MAX_CHARACTERS, MAX_PARTS, FullName
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import MAX_CATALOG_TABLES, MAX_TABLE_READS, MAX_VIEW_DEPTH


@dataclass
class Scope:
    """Declares names, finds them, and counts their uses."""

    names: dict[str, Name] = field(default_factory=dict)  # the current meaning of each
    declared: list[Name] = field(default_factory=list)  # all, in order
    formats: set[str] = field(default_factory=set)  # of files that queries name directly
    names_files: bool = False  # a query names files by a relative path
    computes_names: bool = False  # a query may read any table, by IDENTIFIER()
    hides_names: bool = False  # likewise, by one whose name the text does not show
    places_vary: bool = False  # a location has a built-in variable
    read_catalogs: dict[tuple[str, ...], FullName] = field(default_factory=dict)  # tables read so far

    def unused(self) -> Iterator[SqlError]:
        """A warning for each table and view that no statement uses, unless that cannot be known."""
        for known in () if self.hides_names else self.declared:
            if not known.uses:
                what = "view" if isinstance(known, View) else "table"
                yield known.passage.error(f"{what} '{known.name}' is never used", known.name_offset)

    def doubts(self) -> Iterator[SqlError]:
        """A warning for each table whose readers may overlook something."""
        for known in self.declared:
            if isinstance(known, Table) and known.uses and known.spec.doubt:
                yield known.passage.error(f"table '{known.name}': {known.spec.doubt}", known.name_offset)

    def declare(self, name: Name) -> None:
        """Give a name its meaning from here on."""
        self.names[name.name.lower()] = name
        self.places_vary |= isinstance(name, Table) and has_mark(name.place)
        self.declared.append(name)

    def declare_own(self, name: str, table: Table) -> None:
        """Add a declared table under another name, with options of its own."""
        self.names[name.lower()] = table
        table.uses += 1

    def check_new(self, statement: CreateTable | CreateView) -> None:
        """Raise SqlError if the name is taken, and the statement does not replace it."""
        known = self.names.get(statement.name.lower())
        if known and not statement.replace:
            message = f"'{statement.name}' is already declared in line {known.line}; write CREATE OR REPLACE"
            raise statement.passage.error(message, statement.name_offset)

    def target(self, statement: Insert) -> Table | None:
        """The table that a statement writes; None if the declaration of the table has an error."""
        target = self.names.get(statement.target.lower())
        if target is not None:
            target.uses += 1
        if isinstance(target, Invalid):
            return None
        if isinstance(target, Table) and target.spec.writable:
            if statement.overwrite and target.spec.only_adds:
                message = f"connector '{target.spec.connector}' can only add rows; write INSERT INTO"
                raise statement.passage.error(message, statement.target_offset)
            if target.spec.unwritable:
                message = f"table '{target.name}' cannot be written: {target.spec.unwritable}"
                raise statement.passage.error(message, statement.target_offset)
            return target
        if target is None:
            tables = [known.name for known in self.names.values() if not isinstance(known, View)]
            hint = did_you_mean(statement.target, tables) or "; declare it with CREATE TABLE before"
            message = f"unknown table '{statement.target}'{hint}"
        elif isinstance(target, Table):
            message = f"connector '{target.spec.connector}' of table '{target.name}' can only be read"
        else:
            message = f"'{target.name}' is a view; only a table can be inserted into"
        raise statement.passage.error(message, statement.target_offset)

    def cached(self, statement: Cache | Uncache) -> str | None:
        """The name that a statement caches or releases, which is no use of it; None for nothing to do."""
        known = self.names.get(statement.name.lower())
        if isinstance(known, Invalid):
            return None
        if known is None:
            if isinstance(statement, Uncache) and statement.if_exists:
                return None
            hint = did_you_mean(statement.name, [name.name for name in self.names.values()])
            message = f"unknown table or view '{statement.name}'{hint or '; declare it before'}"
            raise statement.passage.error(message, statement.name_offset)
        if isinstance(known, Table):
            if message := _refusal_of_reads(known):
                raise statement.passage.error(message, statement.name_offset)
            known.step["read"] = True
        return known.name

    def reads(self, query: Passage) -> Reads:
        """The declared tables that a query reads; marks each as read in the plan."""
        tokens = query.tokens
        self.formats |= formats_named(tokens)
        self.names_files |= names_relative_files(tokens)
        if computes_names(tokens):
            self.computes_names = True
            self.hides_names |= hides_names(tokens)
        found = table_names(tokens)
        reads = Reads(file_names=reads_file_names(tokens), catalogs=found.of_catalogs)
        self._add_catalogs(query, found.of_catalogs)
        for name, (offset, times) in found.own.items():
            known = self.names.get(name)
            if known is None:
                continue
            known.uses += 1
            reads.names.append(known)
            reads.has_invalid |= isinstance(known, Invalid)
            if isinstance(known, View):
                reads.has_invalid |= known.reads.has_invalid
                reads.file_names |= known.reads.file_names
                reads.tables |= known.reads.tables
                reads.catalogs |= known.reads.catalogs
                reads.times += times * known.reads.times
                reads.depth = max(reads.depth, known.reads.depth + 1)
            elif isinstance(known, Table):
                if message := _refusal_of_reads(known):
                    raise query.error(message, offset)
                known.step["read"] = True
                reads.tables[id(known)] = known
                reads.times += times
            if reads.times > MAX_TABLE_READS:
                message = (
                    f"with '{known.name}' this query reads tables {reads.times:,} times through its views,"
                    f" the limit is {MAX_TABLE_READS:,}; write the rows of a view into a table first"
                )
                raise query.error(message, offset)
            if reads.depth > MAX_VIEW_DEPTH:
                message = (
                    f"'{name}' is a view that reads views, more than {MAX_VIEW_DEPTH} deep,"
                    " which is the limit; write the rows of a view into a table first"
                )
                raise query.error(message, offset)
        return reads

    def _add_catalogs(self, query: Passage, found: Mapping[tuple[str, ...], FullName]) -> None:
        for key, name in found.items():
            refuse_session(name, query)
            if name.is_too_long:
                message = f"the name of a table has up to {MAX_PARTS} parts and {MAX_CHARACTERS} characters"
                raise query.error(message, name.offset)
            self.read_catalogs.setdefault(key, name)
            if len(self.read_catalogs) > MAX_CATALOG_TABLES:
                message = (
                    f"the script reads more than {MAX_CATALOG_TABLES} tables of catalogs, which is the limit"
                )
                raise query.error(message, name.offset)


def _refusal_of_reads(table: Table) -> str:
    if not table.spec.readable:
        return f"connector '{table.spec.connector}' of table '{table.name}' can only be written"
    return table.spec.unreadable and f"table '{table.name}' cannot be read: {table.spec.unreadable}"


def refuse_session(name: FullName, passage: Passage) -> None:
    """Raise SqlError for another name of a table of the script, which no check of its uses would find."""
    if own := name.of_session:
        raise passage.error(f"'{name}' means '{own}' of the script; write the name alone", name.offset)
