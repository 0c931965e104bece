"""Tokens of a statement as a tree of parentheses, and their text on one line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from spark_runner.sql.text.cursor import CLOSING
from spark_runner.sql.text.tokens import SqlToken, TokenKind, meaningful

_OPERATORS = frozenset("=<>!|&^~+-*/%:")
# Words before a parenthesis that are no functions.
_SPACED = frozenset(
    {
        *("AND", "OR", "NOT", "IN", "ON", "AS", "BY", "FROM", "JOIN", "WHERE", "HAVING", "SELECT", "THEN"),
        *("ELSE", "WHEN", "CASE", "OVER", "USING", "VALUES", "OPTIONS", "WITH", "UNION", "ALL", "EXCEPT"),
        *(
            "INSERT",
            "PROPERTIES",
            "DBPROPERTIES",
            "INTERSECT",
            "EXPECT",
            "KEY",
            "DISTINCT",
            "BETWEEN",
            "LIKE",
            "FILTER",
            "GROUP",
            "INTO",
            "EXISTS",
        ),
    }
)


@dataclass(frozen=True)
class Piece:
    """A token, and whether the file has nothing between it and the one before it."""

    token: SqlToken
    text: str  # perhaps in upper case
    is_glued: bool

    def is_word(self, *words: str) -> bool:
        """Whether this is one of `words`."""
        return self.token.is_word(*words)

    @property
    def is_operator(self) -> bool:
        """Whether this is a symbol of an operator."""
        return self.token.kind is TokenKind.SYMBOL and self.token.text in _OPERATORS


@dataclass(frozen=True)
class Group:
    """What two parentheses enclose."""

    opening: Piece
    inner: tuple["Node", ...]
    closing: Piece


Node = Piece | Group


def pieces(tokens: Sequence[SqlToken]) -> list[Piece]:
    """The pieces of a statement without comments."""
    found = list[Piece]()
    end = -1
    for token in tokens:
        if meaningful(token):
            found.append(Piece(token, token.text, token.start == end))
            end = token.end
    return found


def tree(given: Sequence[Piece]) -> tuple[Node, ...] | None:
    """The pieces by parentheses; None if those do not match."""
    levels: list[list[Node]] = [[]]
    opened = list[Piece]()
    for piece in given:
        is_symbol = piece.token.kind is TokenKind.SYMBOL
        if is_symbol and piece.token.text in CLOSING:
            opened.append(piece)
            levels.append([])
        elif is_symbol and piece.token.text in CLOSING.values():
            if not opened or CLOSING[opened[-1].token.text] != piece.token.text:
                return None
            inner = tuple(levels.pop())
            levels[-1].append(Group(opened.pop(), inner, piece))
        else:
            levels[-1].append(piece)
    return tuple(levels[0]) if not opened else None


def end_of_name(given: Sequence[Piece], index: int) -> int:
    """The index behind the name that begins at `index`, with all its parts."""
    end = index + 1
    while end + 1 < len(given) and given[end].token.text == ".":
        end += 2
    return end


def flattened(nodes: Sequence[Node]) -> Iterator[Piece]:
    """All pieces in order."""
    for node in nodes:
        if isinstance(node, Group):
            yield node.opening
            yield from flattened(node.inner)
            yield node.closing
        else:
            yield node


def flat(nodes: Sequence[Node]) -> str:
    """The text on one line."""
    given = list(flattened(nodes))
    texts = list[str]()
    for index, piece in enumerate(given):
        if index:
            texts.append(_gap(given, index))
        texts.append(piece.text)
    return "".join(texts)


def _gap(given: Sequence[Piece], index: int) -> str:
    """The space between a piece and the one before it."""
    before, piece = given[index - 1], given[index]
    as_written = "" if piece.is_glued else " "
    one, other = before.token, piece.token
    if TokenKind.VARIABLE in {one.kind, other.kind}:
        return as_written  # its value may be a part of a name
    if other.text in {",", ")", "]"} or one.text in {"(", "["}:
        return ""
    if one.text == "," or _is_alone(given, index) or _is_alone(given, index - 1):
        return " "
    if other.text == "(" and one.kind is TokenKind.WORD and one.text.upper() in _SPACED:
        return " "
    ends = one.text in {")", "]"} or one.kind in {TokenKind.STRING, TokenKind.QUOTED}
    if other.kind is TokenKind.WORD and ends:
        return " "
    return as_written


def _is_alone(given: Sequence[Piece], index: int) -> bool:
    """Whether a piece is the operator `=`, and no part of another one."""
    piece = given[index]
    if piece.token.text != "=":
        return False
    before = index > 0 and piece.is_glued and given[index - 1].is_operator
    behind = index + 1 < len(given) and given[index + 1].is_glued and given[index + 1].is_operator
    return not before and not behind
