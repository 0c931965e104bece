"""The names that an expression of a query sees: columns of what the query reads, aliases, and outer queries.

A name is an error only if everything around it is known.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.sql.columns.relations import UNTRACED, Relation, Trace
from spark_runner.protocol.text import did_you_mean

_SHOWN_NAMES = 10
# Functions without parentheses, hidden columns, and words that sqlglot may take for columns.
_NOT_COLUMNS = frozenset(
    {
        *("_metadata", "current_date", "current_timestamp", "current_time", "current_user", "user"),
        *("session_user", "localtimestamp", "grouping__id", "spark_grouping_id", "input__file__name"),
        *("timestamp_ntz", "timestamp_ltz", "date", "timestamp", "time", "interval", "null", "default"),
        *("window", "session_window", "all", "true", "false"),
    }
)


class UnknownColumn(Exception):
    """A name means nothing, or more than one column; the message is for the user."""


@dataclass(frozen=True)
class Source:
    """What a query reads under an alias; `is_filter`: a semi or anti join, whose columns it does not have."""

    alias: str
    relation: Relation
    is_filter: bool = False


@dataclass
class Scope:
    """The names of one query; `parent` is that of the query around it."""

    parent: "Scope | None" = None
    sources: list[Source] = field(default_factory=list)
    merged: dict[str, None] = field(default_factory=dict)  # columns of USING, which both sides have, in order
    aliases: dict[str, Trace] = field(default_factory=dict)  # of the columns that the query gives
    silent: frozenset[str] = frozenset()  # names that are no columns, such as those of a lambda
    is_blind: bool = False  # it has a part that is not understood

    @property
    def is_open(self) -> bool:
        """Whether names may exist that are not known."""
        return self.is_blind or any(source.relation.is_open for source in self.sources)

    def column(self, name: str, *, aliases_first: bool = False) -> Trace:
        """The trace of a column without a qualifier; raises UnknownColumn."""
        key = name.lower()
        for scope in self._outward():
            if key in scope.silent or (key in _NOT_COLUMNS and not scope.has(key)):
                return UNTRACED
            if aliases_first and key in scope.aliases:
                return scope.aliases[key]
            if found := scope.has(key):
                return scope._traced(name, found)  # noqa: SLF001 - of the same class
            if key in scope.aliases:
                return scope.aliases[key]
            if scope.is_open:
                return UNTRACED
        raise UnknownColumn(f"unknown column '{name}'{self._hint(name)}")

    def has(self, key: str) -> list[Source]:
        """The sources that have a column, once for each column of that name."""
        return [source for source in self.sources for _ in source.relation.places.get(key, ())]

    def _traced(self, name: str, found: list[Source]) -> Trace:
        key = name.lower()
        seen = [source for source in found if not source.is_filter] or found[:1]
        if len(seen) > 1 and key not in self.merged and key not in self.aliases and not self.is_blind:
            aliases = list(dict.fromkeys(source.alias for source in seen))
            if len(aliases) == 1:
                message = f"column '{name}' is ambiguous: '{aliases[0]}' has {len(seen)} columns of this name"
            else:
                message = f"column '{name}' is ambiguous; write {' or '.join(f'{a}.{name}' for a in aliases)}"
            raise UnknownColumn(message)
        return Trace.of(column.trace for source in seen for column in source.relation.found(key))

    def qualified(self, qualifier: str, name: str) -> Trace:
        """The trace of `qualifier.name`, which may be a field of a struct; raises UnknownColumn."""
        key = qualifier.lower()
        for scope in self._outward():
            if key in scope.silent or key in _NOT_COLUMNS:
                return UNTRACED
            for source in scope.sources:
                if source.alias.lower() != key:
                    continue
                if found := source.relation.found(name.lower()):
                    return Trace.of(column.trace for column in found)
                if scope.is_open or scope.has(key) or name.lower() in _NOT_COLUMNS:
                    return UNTRACED
                message = f"'{qualifier}' has no column '{name}'{_hint(name, source.relation.names)}"
                raise UnknownColumn(message)
            if found_struct := scope.has(key):
                return Trace.of(
                    column.trace for source in found_struct for column in source.relation.found(key)
                )
            if key in scope.aliases or scope.is_open:
                return UNTRACED
        known = [source.alias for scope in self._outward() for source in scope.sources]
        hint = did_you_mean(qualifier, [*known, *self._columns()]) or (
            f"; known are {', '.join(known[:_SHOWN_NAMES])}" if any(known) else ""
        )
        raise UnknownColumn(f"unknown table or alias '{qualifier}'{hint}")

    def _outward(self) -> Iterator["Scope"]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def _hint(self, name: str) -> str:
        return _hint(name, list(dict.fromkeys([*self._columns(), *self.aliases])))

    def _columns(self) -> list[str]:
        return [name for source in self.sources for name in source.relation.names]


def _hint(name: str, names: list[str]) -> str:
    if hint := did_you_mean(name, names):
        return hint
    if not names:
        return ": the query reads no table"
    more = ", ..." if len(names) > _SHOWN_NAMES else ""
    return f"; known are {', '.join(names[:_SHOWN_NAMES])}{more}"
