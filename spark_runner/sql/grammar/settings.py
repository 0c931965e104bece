"""Parses SET and RESET."""

from itertools import pairwise

from spark_runner.sql.grammar.statements import ResetStatement, SetStatement
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.literals import name_value
from spark_runner.sql.text.tokens import TokenKind


def set_statement(cursor: Cursor) -> SetStatement:
    """The rest of `SET key = value`; raises SqlError."""
    key_offset, start = cursor.offset, cursor.index
    while cursor.here and not cursor.here.is_symbol("="):
        cursor.take()
    key = _key(cursor, start)
    if not key:
        raise cursor.error("write SET key = value", cursor.tokens[0].start)
    if cursor.here is None:
        raise cursor.expected("'=' and a value")
    cursor.need_symbol("=")
    value_offset, start = cursor.offset, cursor.index
    if cursor.here is None:
        raise cursor.expected("a value")
    cursor.index = len(cursor.tokens)
    value = _text(cursor, start)
    return SetStatement(cursor.passage, cursor.tokens, key, value, key_offset, value_offset)


def reset_statement(cursor: Cursor) -> ResetStatement:
    """The rest of `RESET` or `RESET key`; raises SqlError."""
    key_offset, start = cursor.offset, cursor.index
    cursor.index = len(cursor.tokens)
    key = _key(cursor, start)
    if cursor.index > start and (not key or "=" in key):
        raise cursor.error("write RESET, or RESET key", cursor.tokens[0].start)
    return ResetStatement(cursor.passage, cursor.tokens, key, key_offset)


def _key(cursor: Cursor, start: int) -> str:
    """The key from token `start` up to the cursor; empty if there is none.

    A key of several tokens has neither space, comments nor quotes in it: they would hide its beginning.
    """
    tokens = cursor.tokens[start : cursor.index]
    if len(tokens) > 1:
        quotes = any(token.kind in {TokenKind.STRING, TokenKind.QUOTED} for token in tokens)
        if quotes or any(one.end != other.start for one, other in pairwise(tokens)):
            return ""
    key = _text(cursor, start)
    return "" if any(char.isspace() for char in key) else key


def _text(cursor: Cursor, start: int) -> str:
    """The text from token `start` up to the cursor; of a single string or quoted name its value."""
    tokens = cursor.tokens[start : cursor.index]
    if not tokens:
        return ""
    if len(tokens) == 1:
        return name_value(tokens[0].text) if tokens[0].kind is TokenKind.QUOTED else cursor.text_of(tokens[0])
    return cursor.passage.text[tokens[0].start : tokens[-1].end]
