"""Breaks what is too long for a line: at clauses, commas, AND and OR, parentheses."""

from collections.abc import Callable, Sequence

from orchestrator.sql.format.pieces import Group, Node, Piece, flat
from spark_runner.sql.grammar.query import QUERY_WORDS

WIDTH = 100  # characters of a line
STEP = 2  # of the indentation

_CLAUSES = (
    *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "DISTRIBUTE", "CLUSTER", "LIMIT"),
    *("WINDOW", "UNION", "EXCEPT", "INTERSECT", "MINUS", "VALUES", "WITH", "LATERAL", "JOIN"),
)
_BEFORE_JOIN = ("LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "OUTER", "SEMI", "ANTI")
_BEHIND_HEADS = ("DISTINCT", "BY", "ALL", "VIEW", "OUTER")


def query_lines(nodes: Sequence[Node], indent: int) -> list[str]:
    """The lines of a query."""
    if (whole := _fitting(nodes, indent)) is not None:
        return [whole]
    lines = list[str]()
    for clause in _clauses(nodes):
        lines += _clause_lines(clause, indent)
    return lines


def _clause_lines(nodes: Sequence[Node], indent: int) -> list[str]:
    if (whole := _fitting(nodes, indent)) is not None:
        return [whole]
    head = 1
    while head < len(nodes) and _is_word(nodes[head], *_BEHIND_HEADS):
        head += 1
    items = _split(nodes[head:], _is_comma)
    if len(items) > 1 and _is_word(nodes[0], *_CLAUSES):
        lines = [" " * indent + flat(nodes[:head])]
        for item in items:
            lines += expression_lines(item, indent + STEP)
        return lines
    return expression_lines(nodes, indent)


def list_lines(words: Sequence[Node], items: Sequence[Node], indent: int) -> list[str]:
    """The words before a list, and its items on lines of their own if they do not fit."""
    if (whole := _fitting((*words, *items), indent)) is not None:
        return [whole]
    lines = expression_lines(words, indent)
    for item in _split(items, _is_comma):
        lines += expression_lines(item, indent + STEP)
    return lines


def expression_lines(nodes: Sequence[Node], indent: int) -> list[str]:
    """The lines of an expression, or of anything else that is no query."""
    if (whole := _fitting(nodes, indent)) is not None:
        return [whole]
    parts = _split_at_conditions(nodes)
    if len(parts) > 1:
        lines = expression_lines(parts[0], indent)
        for part in parts[1:]:
            lines += expression_lines(part, indent + STEP)
        return lines
    return _broken_at_group(nodes, indent)


def group_lines(group: Group, indent: int) -> list[str]:
    """The lines between the parentheses of a group."""
    if group.inner and _is_word(group.inner[0], *QUERY_WORDS):
        return query_lines(group.inner, indent)
    lines = list[str]()
    for item in _split(group.inner, _is_comma):
        lines += expression_lines(item, indent)
    return lines


def _broken_at_group(nodes: Sequence[Node], indent: int) -> list[str]:
    """The widest parentheses on lines of their own."""
    widths = [len(flat((node,))) if isinstance(node, Group) and node.inner else 0 for node in nodes]
    widest = max(widths, default=0)
    if widest <= STEP:
        return [" " * indent + flat(nodes)]
    index = widths.index(widest)
    group = nodes[index]
    if not isinstance(group, Group):  # pragma: no cover - for the type checker
        return [" " * indent + flat(nodes)]
    before = " " * indent + flat((*nodes[:index], group.opening))
    return [before, *group_lines(group, indent + STEP), *_behind(group, nodes[index + 1 :], indent)]


def _behind(group: Group, rest: Sequence[Node], indent: int) -> list[str]:
    last = (group.closing, *rest)
    if (whole := _fitting(last, indent)) is not None:
        return [whole]
    return _broken_at_group(last, indent)


def _fitting(nodes: Sequence[Node], indent: int) -> str | None:
    text = " " * indent + flat(nodes)
    return text if len(text) <= WIDTH else None


def _clauses(nodes: Sequence[Node]) -> list[Sequence[Node]]:
    """The clauses of a query: SELECT ..., FROM ..., each JOIN, ..."""
    starts = [0]
    for index in range(1, len(nodes)):
        if not _is_word(nodes[index], *_CLAUSES) or _is_no_clause(nodes, index):
            continue
        start = index
        while (
            _is_word(nodes[index], "JOIN")
            and start > starts[-1]
            and _is_word(nodes[start - 1], *_BEFORE_JOIN)
        ):
            start -= 1
        if start > starts[-1]:
            starts.append(start)
    return [nodes[start:end] for start, end in zip(starts, [*starts[1:], len(nodes)], strict=True)]


def _is_no_clause(nodes: Sequence[Node], index: int) -> bool:
    """Whether a word is a part of another clause, or a name."""
    before = nodes[index - 1]
    if isinstance(before, Piece) and before.token.text in {".", "*", "/*+"}:
        return True  # a name, * EXCEPT (...), or a hint
    return _is_word(before, "DISTINCT", "AS", "JOIN", "LATERAL") or (
        _is_word(nodes[index], "VALUES", "LATERAL") and _is_word(before, "FROM")
    )


def _split_at_conditions(nodes: Sequence[Node]) -> list[Sequence[Node]]:
    """The parts that AND and OR begin; not those of BETWEEN and CASE."""
    starts, between, cases = [0], 0, 0
    for index, node in enumerate(nodes):
        if _is_word(node, "CASE", "END"):
            cases += 1 if _is_word(node, "CASE") else -1
        elif _is_word(node, "BETWEEN"):
            between += 1
        elif _is_word(node, "AND") and between:
            between -= 1
        elif index and cases <= 0 and _is_word(node, "AND", "OR"):
            starts.append(index)
    return [nodes[start:end] for start, end in zip(starts, [*starts[1:], len(nodes)], strict=True)]


def _split(nodes: Sequence[Node], ends: Callable[[Node], bool]) -> list[Sequence[Node]]:
    """The parts, each with the node that ends it."""
    parts, start = list[Sequence[Node]](), 0
    for index, node in enumerate(nodes):
        if ends(node):
            parts.append(nodes[start : index + 1])
            start = index + 1
    return [*parts, nodes[start:]] if start < len(nodes) else parts


def _is_comma(node: Node) -> bool:
    return isinstance(node, Piece) and node.token.text == ","


def _is_word(node: Node, *words: str) -> bool:
    return isinstance(node, Piece) and node.is_word(*words)
