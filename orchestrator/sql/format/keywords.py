"""Writes keywords in upper case, where sqlglot proves that they are keywords and no names."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from orchestrator.sql.columns.parsing import same_meaning
from orchestrator.sql.format.pieces import Piece, flat
from spark_runner.sql.text.tokens import TokenKind

_KEYWORDS = frozenset(
    {
        *("SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "WITH", "AS"),
        *("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS", "SEMI", "ANTI", "NATURAL", "ON"),
        *("USING", "UNION", "ALL", "EXCEPT", "INTERSECT", "AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE"),
        *("RLIKE", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "OVER", "PARTITION", "VALUES", "ASC"),
        *("DESC", "NULLS", "EXISTS", "TRUE", "FALSE", "INTERVAL", "WINDOW", "FILTER", "SORT", "DISTRIBUTE"),
        *("CLUSTER", "OFFSET", "ROWS", "RANGE", "PRECEDING", "FOLLOWING", "UNBOUNDED", "CURRENT", "ROW"),
    }
)
_BEFORE_OPERANDS = (
    "SELECT",
    "FROM",
    "WHERE",
    "HAVING",
    "BY",
    "ON",
    "AND",
    "OR",
    "JOIN",
    "THEN",
    "ELSE",
    "WHEN",
)
_NEVER_FIRST = (
    *(
        "FROM",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "LIMIT",
        "JOIN",
        "ON",
        "USING",
        "UNION",
        "INTERSECT",
        "AND",
    ),
    *("OR", "AS", "BY", "IN", "IS", "LIKE", "BETWEEN", "THEN", "ELSE", "WHEN", "END", "ASC", "DESC"),
)


def with_keywords(query: Sequence[Piece], before: str = "") -> list[Piece]:
    """The pieces of a query with keywords in upper case; as written if one of them may be a name.

    With `before` they are the end of a query, which begins with that text.
    """
    raised = [_raised(piece) for piece in query]
    if raised == list(query):
        return raised
    if not _has_names(query) and same_meaning(before + _readable(query), before + _readable(raised)):
        return raised
    return list(query)


def _has_names(query: Sequence[Piece]) -> bool:
    """Whether a keyword stands where a name is needed, as in SELECT from FROM t, which sqlglot accepts."""
    return any(
        behind.is_word(*_NEVER_FIRST)
        and (one.is_word(*_BEFORE_OPERANDS) or one.token.text in {",", "(", "."})
        for one, behind in pairwise(query)
    )


def head(given: Sequence[Piece]) -> list[Piece]:
    """The words of a head that the parser of scripts knows, in upper case."""
    return [
        replace(piece, text=piece.text.upper()) if piece.token.kind is TokenKind.WORD else piece
        for piece in given
    ]


def _raised(piece: Piece) -> Piece:
    is_keyword = piece.token.kind is TokenKind.WORD and piece.text.upper() in _KEYWORDS
    return replace(piece, text=piece.text.upper()) if is_keyword else piece


def _readable(query: Sequence[Piece]) -> str:
    """The text, with a name for each variable."""
    is_variable = TokenKind.VARIABLE
    return flat([replace(each, text="x1") if each.token.kind is is_variable else each for each in query])
