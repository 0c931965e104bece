"""Parses ASSERT."""

from spark_runner.sql.grammar.statements import Assert
from spark_runner.sql.grammar.windows import with_spark_functions
from spark_runner.sql.text.cursor import CLOSING, Cursor
from spark_runner.sql.text.tokens import TokenKind

_CLOSING = frozenset(CLOSING.values())


def assertion(cursor: Cursor) -> Assert:
    """The condition and the message behind ASSERT; raises SqlError."""
    comma = _last_comma(cursor)
    end = len(cursor.passage.text) if comma is None else cursor.tokens[comma].start
    if cursor.here is None or cursor.index == comma:
        raise cursor.expected("a condition")
    condition = with_spark_functions(cursor.passage.part(cursor.offset, end))
    message = ""
    if comma is not None:
        cursor.index = comma + 1
        token = cursor.here
        if token is None or token.kind is not TokenKind.STRING:
            what = "a message in quotes behind the condition; a condition with a comma needs parentheses"
            raise cursor.expected(what)
        message = cursor.text_of(cursor.take())
        cursor.finish("the message of ASSERT is one string")
    return Assert(cursor.passage, cursor.tokens, condition, message)


def _last_comma(cursor: Cursor) -> int | None:
    """The index of the last comma outside of parentheses."""
    depth, found = 0, None
    for index in range(cursor.index, len(cursor.tokens)):
        token = cursor.tokens[index]
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text in CLOSING) - (token.text in _CLOSING)
            if depth == 0 and token.text == ",":
                found = index
    return found
