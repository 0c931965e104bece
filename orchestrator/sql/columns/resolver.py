"""Resolves the names of one query, and finds the columns that it gives."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from orchestrator.sql.columns.names import Names
from orchestrator.sql.columns.relations import (
    UNKNOWN,
    UNTRACED,
    Column,
    Relation,
    Trace,
    relation,
)
from orchestrator.sql.columns.scope import Scope, Source, UnknownColumn

MAX_SOURCES = 100  # of one FROM; each name is looked up in all of them
_KNOWN_PARTS = frozenset(
    {
        *("expressions", "hint", "distinct", "from_", "joins", "where", "group", "having", "order"),
        *("sort", "distribute", "cluster", "limit", "offset", "windows", "with_"),
    }
)
_WITH_ALIASES_FIRST = ("having", "order", "sort", "distribute", "cluster", "windows")
_UNITS = frozenset(
    {
        *("year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second"),
        *("millisecond", "microsecond"),
    }
)  # as in dateadd(DAY, 1, d)
_TABLE_PARTS = frozenset({"this", "alias", "sample", "joins"})


@dataclass(frozen=True)
class Fault:
    """A message for the user, and its offset in the text of the query."""

    offset: int
    message: str


@dataclass
class Resolver:
    """Resolves one query after another, and collects their faults."""

    limit: int  # of faults; further names are not looked up
    has_lambdas: bool = True  # the text may hold functions such as x -> x + 1
    faults: list[Fault] = field(default_factory=list)

    def query(self, node: exp.Expr, names: Names, parent: Scope | None = None) -> Relation:
        """The columns that a query gives."""
        names = self._with_definitions(node, names, parent)
        match node:
            case exp.Select():
                return self._select(node, names, parent)
            case exp.SetOperation():
                return self._set_operation(node, names, parent)
            case exp.Subquery():
                inner = node.this
                return self.query(inner, names, parent) if isinstance(inner, exp.Query) else UNKNOWN
            case exp.Values():
                return _values(node)
        return UNKNOWN

    def expression(self, node: exp.Expr, names: Names, scope: Scope) -> None:
        """Resolve an expression, the only column of `node`, in a scope of its own."""
        for each in node.expressions if isinstance(node, exp.Select) else ():
            scope.silent = _names_of_lambdas(each)
            self._visit(each, scope, names)

    def _with_definitions(self, node: exp.Expr, names: Names, parent: Scope | None) -> Names:
        definitions = node.args.get("with_")
        if definitions is None:
            return names
        for definition in definitions.expressions:
            found = self.query(definition.this, names, parent) if not definitions.recursive else UNKNOWN
            found = _renamed(found, definition.args.get("alias"))
            names = Names({definition.alias.lower(): found}, names)
        return names

    def _set_operation(self, node: exp.SetOperation, names: Names, parent: Scope | None) -> Relation:
        left = self.query(node.left, names, parent)
        right = self.query(node.right, names, parent)
        if left.columns is None or right.columns is None or node.args.get("by_name"):
            return UNKNOWN
        if len(left.columns) != len(right.columns):
            message = (
                f"{node.key.upper()} needs queries with the same number of columns, these have"
                f" {len(left.columns)} and {len(right.columns)}"
            )
            self.faults.append(Fault(_offset(node.right), message))
            return UNKNOWN
        pairs = zip(left.columns, right.columns, strict=True)
        return relation([Column(one.name, Trace.of((one.trace, other.trace))) for one, other in pairs])

    def _select(self, node: exp.Select, names: Names, parent: Scope | None) -> Relation:
        scope = Scope(parent, silent=_names_of_lambdas(node) if self.has_lambdas else frozenset())
        scope.is_blind = any(value and part not in _KNOWN_PARTS for part, value in node.args.items())
        if (start := node.args.get("from_")) is not None:
            self._read(start.this, scope, names)
        joins = node.args.get("joins") or ()
        for join in joins:
            self._join(join, scope, names)
        if len(scope.sources) > MAX_SOURCES:
            scope.sources, scope.is_blind = [], True
        # Aliases may be used before they are traced: by each other, and in GROUP BY.
        scope.aliases = {alias.lower(): UNTRACED for alias in _aliases(node.expressions)}
        columns = list(self._projections(node.expressions, scope, names))
        gives = relation([column for column in columns if column is not None])
        if None in columns:
            gives = UNKNOWN
        for join in joins:
            self._visit(join.args.get("on"), scope, names)
        without_aliases = scope.aliases
        scope.aliases = {}
        self._visit(node.args.get("where"), scope, names)
        scope.aliases = without_aliases
        if (group := node.args.get("group")) is not None:
            self._visit(group, scope, names)
        # Behind the columns, their names are known, too.
        scope.aliases = {**{name.lower(): UNTRACED for name in gives.names}, **scope.aliases}
        for part in _WITH_ALIASES_FIRST:
            for each in _listed(node.args.get(part)):
                self._visit(each, scope, names, aliases_first=True)
        return gives

    def _read(self, node: exp.Expr, scope: Scope, names: Names) -> None:
        """Add what FROM or JOIN names."""
        alias = node.args.get("alias")
        shown = alias.name if alias is not None else ""
        found = UNKNOWN
        if isinstance(node, exp.Table):
            shown = shown or node.name
            if isinstance(node.this, exp.Identifier) and node.args.get("db") is None:
                found = self._table(node.this, names)
            if any(value and part not in _TABLE_PARTS for part, value in node.args.items()):
                found = UNKNOWN
        elif isinstance(node, exp.Values):
            found = _values(node)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            found = self.query(node, names, scope.parent)
            scope.is_blind |= bool(node.args.get("pivots"))
        else:
            scope.is_blind = True
        scope.sources.append(Source(shown, _renamed(found, alias)))
        for join in node.args.get("joins") or ():
            scope.is_blind = True
            self._join(join, scope, names)

    def _table(self, name: exp.Identifier, names: Names) -> Relation:
        """The columns of a name of one part."""
        found = names.find(name.name)
        if found is None and len(self.faults) < self.limit:
            self.faults.append(Fault(name.meta.get("start", 0), names.unknown(name.name)))
        return found or UNKNOWN

    def _join(self, join: exp.Join, scope: Scope, names: Names) -> None:
        self._read(join.this, scope, names)
        if join.kind in {"SEMI", "ANTI"}:
            last = scope.sources.pop()
            scope.sources.append(Source(last.alias, last.relation, is_filter=True))
        if join.method or join.kind not in {"", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"}:
            scope.is_blind = True
        scope.merged |= {each.name.lower(): None for each in join.args.get("using") or ()}

    def _projections(self, nodes: Iterable[exp.Expr], scope: Scope, names: Names) -> Iterator[Column | None]:
        """The columns of SELECT; None for a part with columns that are not known."""
        for node in nodes:
            star = node.this if isinstance(node, exp.Column) else node
            if isinstance(star, exp.Star):
                yield from _starred(node, star, scope)
            elif isinstance(node, exp.Aliases):
                self._visit(node, scope, names)
                yield None
            else:
                trace = self._visit(node, scope, names)
                if isinstance(node, exp.Alias):
                    scope.aliases[node.alias.lower()] = trace
                is_named = isinstance(node, exp.Alias | exp.Column)
                yield Column(node.alias_or_name if is_named else None, trace)

    def _visit(
        self, root: exp.Expr | None, scope: Scope, names: Names, *, aliases_first: bool = False
    ) -> Trace:
        """Resolve the columns of an expression; returns what its value is made of."""
        if root is None:
            return Trace()
        traces, left = list[Trace](), [root]
        while left:
            node = left.pop()
            match node:
                case exp.Column():
                    traces.append(self._column(node, scope, aliases_first=aliases_first))
                case exp.Query():
                    inner = self.query(node, names, scope)
                    traces += [UNTRACED] if inner.columns is None else [each.trace for each in inner.columns]
                case exp.Kwarg() | exp.PropertyEQ():
                    left.append(node.expression)
                case _:
                    left += node.iter_expressions()
        return Trace.of(traces)

    def _column(self, node: exp.Column, scope: Scope, *, aliases_first: bool) -> Trace:
        if len(self.faults) >= self.limit:
            return UNTRACED
        if isinstance(node.this, exp.Star) or node.args.get("db") is not None:
            return UNTRACED
        qualifier = node.args.get("table")
        if qualifier is None and node.name.lower() in _UNITS and isinstance(node.parent, exp.Func):
            return UNTRACED
        try:
            if qualifier is None:
                return scope.column(node.name, aliases_first=aliases_first)
            return scope.qualified(qualifier.name, node.name)
        except UnknownColumn as error:
            at = node.this
            if qualifier is not None and str(error).startswith("unknown table"):
                at = qualifier
            self.faults.append(Fault(at.meta.get("start", 0), str(error)))
            return UNTRACED


def _starred(node: exp.Expr, star: exp.Star, scope: Scope) -> Iterator[Column | None]:
    if scope.is_blind or star.args.get("replace") or star.args.get("rename"):
        yield None
        return
    sources = [source for source in scope.sources if not source.is_filter]
    if isinstance(node, exp.Column):
        sources = [source for source in sources if source.alias.lower() == node.table.lower()]
    if (len(sources) != 1 and isinstance(node, exp.Column)) or (scope.merged and len(scope.sources) > 2):  # noqa: PLR2004 - one join
        yield None  # a struct, or several joins whose columns are merged
        return
    excepted = {each.name.lower() for each in star.args.get("except_") or ()}
    merged = [[column for source in sources for column in source.relation.found(key)] for key in scope.merged]
    is_known = all(source.relation.columns is not None for source in sources)
    if not is_known or any(len(found) != len(sources) for found in merged):
        yield None
        return
    for key, found in zip(scope.merged, merged, strict=True):  # they come first, in the order of USING
        if key not in excepted:
            yield Column(found[0].name, Trace.of(column.trace for column in found))
    for source in sources:
        for column in source.relation.columns or ():
            if column.name is None or column.name.lower() not in {*excepted, *scope.merged}:
                yield column


def _values(node: exp.Values) -> Relation:
    first = node.expressions[0] if node.expressions else None
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    return relation([Column(f"col{number}", Trace()) for number in range(1, width + 1)])


def _renamed(found: Relation, alias: exp.Expr | None) -> Relation:
    columns = alias.args.get("columns") if alias is not None else None
    return found.renamed([each.name for each in columns]) if columns else found


def _aliases(nodes: Iterable[exp.Expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, exp.Alias):
            yield node.alias
        elif isinstance(node, exp.Aliases):
            yield from (each.name for each in node.args.get("expressions") or ())


def _names_of_lambdas(node: exp.Expr) -> frozenset[str]:
    return frozenset(each.name.lower() for found in node.find_all(exp.Lambda) for each in found.expressions)


def _listed(part: object) -> list[exp.Expr]:
    parts = part if isinstance(part, list) else [part]
    return [each for each in parts if isinstance(each, exp.Expr)]


def _offset(node: exp.Expr) -> int:
    """The first place in the text that the parts of a query name."""
    return min((each.meta["start"] for each in node.walk() if "start" in each.meta), default=0)
