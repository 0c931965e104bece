"""The canonical form of statements on catalogs: MERGE, DELETE, USE, SHOW and others."""

from collections.abc import Iterator, Sequence

from orchestrator.sql.format.keywords import head, with_keywords
from orchestrator.sql.format.layout import expression_lines, list_lines
from orchestrator.sql.format.pieces import Piece, end_of_name, flat, tree

FIRST_WORDS = ("MERGE", "DELETE", "USE", "SHOW", "DESCRIBE", "DESC", "ANALYZE", "REFRESH")
_NAMESPACES = ("NAMESPACE", "DATABASE", "SCHEMA")
_BEHIND_NAMESPACES = ("COMMENT", "LOCATION", "WITH", "PROPERTIES", "DBPROPERTIES")
_OF_ANALYZE = ("COMPUTE", "STATISTICS", "NOSCAN", "FOR", "ALL", "COLUMNS", "PARTITION")
_BEFORE_CONDITIONS = "SELECT "


def catalog_lines(given: Sequence[Piece], indent: int) -> list[str] | None:
    """The lines of a statement that begins with one of `FIRST_WORDS`; None if its parts are not clear."""
    first = given[0]
    if first.is_word("MERGE"):
        return _merge(given, indent)
    if first.is_word("DELETE"):
        return _delete(given, indent)
    raised: list[Piece] | None
    if first.is_word("USE"):
        raised = _named(given, 1, ("CATALOG", *_NAMESPACES))
    elif first.is_word("SHOW"):
        raised = list(_shown(given))
    elif first.is_word("ANALYZE"):
        raised = _analyzed(given)
    else:
        raised = _named(given, 1, ("TABLE",))
    return None if raised is None else [" " * indent + flat(raised)]


def is_namespace(given: Sequence[Piece]) -> bool:
    """Whether a CREATE is one of a namespace."""
    return len(given) > 1 and given[1].is_word(*_NAMESPACES)


def namespace_lines(given: Sequence[Piece], indent: int) -> list[str] | None:
    """The lines of CREATE NAMESPACE IF NOT EXISTS name."""
    start = 5
    if [piece.token.text.upper() for piece in given[2:start]] != ["IF", "NOT", "EXISTS"] or len(
        given
    ) == start:
        return None
    end = end_of_name(given, start)
    behind = [head([each])[0] if each.is_word(*_BEHIND_NAMESPACES) else each for each in given[end:]]
    return [" " * indent + flat([*head(given[:start]), *given[start:end], *behind])]


def _named(given: Sequence[Piece], start: int, words: Sequence[str]) -> list[Piece] | None:
    """`USE CATALOG name`: words that are not the name themselves in upper case."""
    has_word = len(given) > start + 1 and given[start].is_word(*words) and given[start + 1].token.text != "."
    start += has_word
    return [*head(given[:start]), *given[start:]] if len(given) > start else None


def _shown(given: Sequence[Piece]) -> Iterator[Piece]:
    """`SHOW TABLES IN name LIKE '...'`: the words around the name in upper case."""
    index = 0
    while index < len(given):
        behind_word = index > 1 and given[index - 1].is_word("FROM", "IN")
        if behind_word:
            end = end_of_name(given, index)
            yield from given[index:end]
            index = end
            continue
        is_word = index <= 1 or given[index].is_word("FROM", "IN", "LIKE")
        yield head(given[index : index + 1])[0] if is_word else given[index]
        index += 1


def _analyzed(given: Sequence[Piece]) -> list[Piece] | None:
    """`ANALYZE TABLE name COMPUTE STATISTICS FOR COLUMNS a, b`: names as they are."""
    start = 2
    if len(given) <= start or not given[1].is_word("TABLE"):
        return None
    end = end_of_name(given, start)
    columns = next((i for i, each in enumerate(given) if i >= end and each.is_word("COLUMNS")), len(given))
    behind = [head([each])[0] if each.is_word(*_OF_ANALYZE) else each for each in given[end : columns + 1]]
    return [*head(given[:start]), *given[start:end], *behind, *given[columns + 1 :]]


def _delete(given: Sequence[Piece], indent: int) -> list[str] | None:
    """`DELETE FROM name AS alias WHERE condition`."""
    start = 2
    if len(given) <= start or not given[1].is_word("FROM"):
        return None
    where = _with_alias(given, end_of_name(given, start), "WHERE")
    if where is None:
        return None
    words = [*head(given[:start]), *_source(given[start:where])]
    condition = tree(
        [*head(given[where : where + 1]), *with_keywords(given[where + 1 :], _BEFORE_CONDITIONS)]
    )
    if condition is None:
        return None
    whole = [*words, *condition]
    lines = expression_lines(whole, indent)
    return lines if len(lines) == 1 else [" " * indent + flat(words), *expression_lines(condition, indent)]


def _with_alias(given: Sequence[Piece], index: int, *following: str) -> int | None:
    """The index of the word that follows a name or a query, and its alias, at `index`."""
    for ahead in range(3):
        if index + ahead < len(given) and given[index + ahead].is_word(*following):
            return index + ahead
    return None


def _source(given: Sequence[Piece]) -> list[Piece]:
    """A name or query with its alias; AS in upper case."""
    return [head([each])[0] if index and each.is_word("AS") else each for index, each in enumerate(given)]


def _merge(given: Sequence[Piece], indent: int) -> list[str] | None:
    """`MERGE INTO target USING source ON condition`, and each WHEN on a line of its own."""
    start = 2
    if len(given) <= start or not given[1].is_word("INTO"):
        return None
    using = _with_alias(given, end_of_name(given, start), "USING")
    branches = _branches(given)
    if using is None or not branches:
        return None
    on = _on(given, using + 1, branches[0])
    if on is None:
        return None
    lines = [" " * indent + flat([*head(given[:start]), *_source(given[start:using])])]
    parts = [
        [*head(given[using : using + 1]), *_read(given[using + 1 : on])],
        [*head(given[on : on + 1]), *with_keywords(given[on + 1 : branches[0]], _BEFORE_CONDITIONS)],
    ]
    for part in parts:
        if (nodes := tree(part)) is None:
            return None
        lines += expression_lines(nodes, indent)
    for since, until in zip(branches, [*branches[1:], len(given)], strict=True):
        branch = _branch(given[since:until], indent)
        if branch is None:
            return None
        lines += branch
    return lines


def _read(given: Sequence[Piece]) -> list[Piece]:
    """The source of a MERGE: a name, or a query in parentheses."""
    if given[0].token.text != "(":
        return _source(given)
    closing = max(index for index, piece in enumerate(given) if piece.token.text == ")")
    return [given[0], *with_keywords(given[1:closing]), given[closing], *_alias(given[closing + 1 :])]


def _alias(given: Sequence[Piece]) -> list[Piece]:
    return [*head(given[:1]), *given[1:]] if given and given[0].is_word("AS") else list(given)


def _branches(given: Sequence[Piece]) -> list[int]:
    """The index of each WHEN that begins a branch, and is not that of a CASE."""
    return [
        index
        for index in _outside_of_cases(given)
        if given[index].is_word("WHEN")
        and any(each.is_word("MATCHED", "NOT") for each in given[index + 1 : index + 2])
    ]


def _on(given: Sequence[Piece], start: int, end: int) -> int | None:
    """The index of ON behind the source."""
    depth = 0
    for index in range(start, end):
        depth += (given[index].token.text == "(") - (given[index].token.text == ")")
        if not depth and index > start and given[index].is_word("ON"):
            return index
    return None


def _branch(given: Sequence[Piece], indent: int) -> list[str] | None:
    """One branch: `WHEN [NOT] MATCHED [BY ...] [AND condition] THEN action`."""
    then = next((index for index in _outside_of_cases(given) if given[index].is_word("THEN")), None)
    words = next((index for index, piece in enumerate(given) if piece.is_word("AND")), then)
    if then is None or words is None:
        return None
    words = min(words, then)
    condition = list[Piece]()
    if words < then:
        condition = [
            *head(given[words : words + 1]),
            *with_keywords(given[words + 1 : then], _BEFORE_CONDITIONS),
        ]
    first: list[Piece] = [*head(given[:words]), *condition, *head(given[then : then + 1])]
    action = given[then + 1 :]
    if action and action[0].is_word("UPDATE"):
        first += head(action[:2])
        return _joined(first, with_keywords(action[2:], _BEFORE_CONDITIONS), indent)
    if action and action[0].is_word("INSERT"):
        values = next((index for index, each in enumerate(action) if each.is_word("VALUES")), len(action))
        first += [*head(action[:1]), *action[1:values], *head(action[values : values + 1])]
        first += with_keywords(action[values + 1 :], _BEFORE_CONDITIONS)
        nodes = tree(first)
        return None if nodes is None else expression_lines(nodes, indent)
    return [" " * indent + flat([*first, *head(action)])] if len(action) == 1 else None


def _joined(words: Sequence[Piece], items: Sequence[Piece], indent: int) -> list[str] | None:
    first, rest = tree(words), tree(items)
    return None if first is None or rest is None else list_lines(first, rest, indent)


def _outside_of_cases(given: Sequence[Piece]) -> Iterator[int]:
    depth = cases = 0
    for index, piece in enumerate(given):
        depth += (piece.token.text == "(") - (piece.token.text == ")")
        cases += piece.is_word("CASE") - piece.is_word("END") if not depth else 0
        if not depth and not cases:
            yield index
