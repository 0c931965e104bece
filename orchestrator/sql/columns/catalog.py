"""The tables and views that a script has declared so far, with their columns; finds wrong names."""

from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.sql.columns.names import Names
from orchestrator.sql.columns.parsing import EXPRESSION_HEAD, Parser
from orchestrator.sql.columns.relations import UNKNOWN, Column, Origin, Relation, Trace, relation
from orchestrator.sql.columns.resolver import Fault, Resolver
from orchestrator.sql.columns.scope import Scope, Source
from spark_runner.sql.compiler.compile import MAX_ERRORS
from spark_runner.sql.grammar.columns import Columns
from spark_runner.sql.grammar.statements import CreateTable
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.literals import name_value
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import TokenKind

# Settings of Spark that change what a name means.
_CHANGES_NAMES = (
    *("spark.sql.casesensitive", "spark.sql.parser.quotedregexcolumnnames"),
    *("spark.sql.ansi.doublequotedidentifiers", "spark.sql.legacy.", "spark.sql.variable."),
)


def changes_names(key: str) -> bool:
    """Whether a setting of Spark changes what the names of columns mean."""
    return key.lower().startswith(_CHANGES_NAMES)


class Target(NamedTuple):
    """A table that an INSERT writes, as declared; `stored` is None without declared columns."""

    name: str
    stored: tuple[str, ...] | None
    in_files: bool


@dataclass
class Catalog:
    """Declares names in the order of the script."""

    parser: Parser = field(default_factory=Parser)
    relations: dict[str, Relation] = field(default_factory=dict)  # by lower-case name
    targets: dict[str, Target] = field(default_factory=dict)
    is_silent: bool = False  # a setting changes what names mean
    errors: list[SqlError] = field(default_factory=list)

    def table(self, statement: CreateTable, *, in_files: bool) -> None:
        """Declare a table, and check its expressions."""
        columns = statement.columns
        stored = tuple(columns.stored) if columns else None
        key = statement.name.lower()
        self.targets[key] = Target(statement.name, stored, in_files)
        if columns is None:
            self.relations[key] = UNKNOWN
            return
        self._check_expressions(columns)
        traced = {name: Trace(frozenset({Origin(statement.name, name)})) for name in columns.names}
        self.relations[key] = relation([Column(name, trace) for name, trace in traced.items()])

    def view(self, name: str, query: Passage) -> None:
        """Declare a view, and check its query."""
        self.relations[name.lower()] = self.query(query)

    def forget(self, name: str) -> None:
        """A name whose columns are not known from here on."""
        self.relations[name.lower()] = UNKNOWN
        self.targets.pop(name.lower(), None)

    def query(self, passage: Passage) -> Relation:
        """The columns that a query gives; its wrong names become errors."""
        if self.is_silent or len(self.errors) >= MAX_ERRORS:
            return UNKNOWN
        tokens = passage.tokens
        match [token.kind for token in tokens]:
            case [TokenKind.WORD, TokenKind.WORD | TokenKind.QUOTED] if tokens[0].is_word("TABLE"):
                name, names = name_value(tokens[1].text), Names(self.relations)
                if (known := names.find(name)) is None:
                    self.errors.append(passage.error(names.unknown(name), tokens[1].start))
                return known or UNKNOWN
        tree = self.parser.query(passage)
        if tree is None:
            return UNKNOWN
        resolver = Resolver(MAX_ERRORS - len(self.errors), has_lambdas="->" in passage.text)
        try:
            found = resolver.query(tree, Names(self.relations))
        except RecursionError:
            return UNKNOWN
        self._add(passage, resolver.faults)
        return found

    def condition(self, passage: Passage) -> None:
        """Check an expression that reads no table by itself."""
        self._expression(passage, Scope())

    def _check_expressions(self, columns: Columns) -> None:
        """Computed columns see the stored ones and those computed before them; conditions see all."""
        computed = {column.name for column in columns.computed}
        visible = [name for name in columns.names if name not in computed]
        for column in columns.computed:
            self._expression(column.expression, _scope_of(visible), later=computed - set(visible))
            visible.append(column.name)
        scope = _scope_of(visible)
        for expectation in columns.expectations:
            self._expression(expectation.condition, scope)

    def _expression(
        self, passage: Passage, scope: Scope, later: set[str] | frozenset[str] = frozenset()
    ) -> None:
        if self.is_silent or len(self.errors) >= MAX_ERRORS:
            return
        if (tree := self.parser.expression(passage)) is None:
            return
        resolver = Resolver(MAX_ERRORS - len(self.errors), has_lambdas="->" in passage.text)
        try:
            resolver.expression(tree, Names(self.relations), scope)
        except RecursionError:
            return
        faults = (Fault(max(0, each.offset - len(EXPRESSION_HEAD)), each.message) for each in resolver.faults)
        self._add(passage, [_with_later(fault, later) for fault in faults])

    def _add(self, passage: Passage, faults: list[Fault]) -> None:
        seen = dict.fromkeys((fault.offset, fault.message) for fault in faults)
        self.errors += (passage.error(message, offset) for offset, message in seen)


def _scope_of(names: list[str]) -> Scope:
    return Scope(sources=[Source("", relation([Column(name) for name in names]))])


def _with_later(fault: Fault, later: set[str] | frozenset[str]) -> Fault:
    """Say of a computed column that is declared too late what to do."""
    for name in later:
        if fault.message.lower().startswith(f"unknown column '{name.lower()}'"):
            message = f"'{name}' is computed later; declare it before the columns that use it"
            return Fault(fault.offset, message)
    return fault
