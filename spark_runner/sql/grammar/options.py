"""Parses options: those of CREATE TABLE, and those behind the name of a table, for one use of it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spark_runner.sql.grammar.option_references import referring_pieces
from spark_runner.sql.grammar.statements import Option
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.literals import name_value
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import SqlToken, TokenKind

_NAMES = frozenset({TokenKind.WORD, TokenKind.QUOTED})
# What may follow a table in a query; any other word there is an alias.
_BEHIND_TABLES = (
    *("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI", "NATURAL", "LATERAL"),
    *("ON", "USING", "PIVOT", "UNPIVOT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER"),
    *("DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW", "QUALIFY", "UNION", "EXCEPT", "MINUS", "INTERSECT"),
    *("SELECT", "MAP", "REDUCE", "WATERMARK"),
)


def options(cursor: Cursor) -> tuple[Option, ...]:
    """`(key = value, ...)`; raises SqlError."""
    cursor.need_symbol("(")
    found: dict[str, Option] = {}
    while True:
        option = _option(cursor)
        if option.key.lower() in found:
            raise cursor.error(f"option '{option.key}' is given twice", option.key_offset)
        found[option.key.lower()] = option
        if not cursor.take_symbol(","):
            break
    if not cursor.take_symbol(")"):
        raise cursor.expected("',' or ')'")
    return tuple(found.values())


def _option(cursor: Cursor) -> Option:
    key_offset = cursor.offset
    token = cursor.here
    if token is None or token.kind not in {TokenKind.STRING, *_NAMES}:
        raise cursor.expected("the name of an option")
    taken = cursor.take()
    parts = [name_value(taken.text) if taken.kind is TokenKind.QUOTED else cursor.text_of(taken)]
    while token.kind is TokenKind.WORD and cursor.take_symbol("."):
        parts.append(cursor.take().text)
    key = ".".join(parts)
    _ = cursor.take_symbol("=")  # optional in Spark's OPTIONS
    value_offset = cursor.offset
    sign = "-" if cursor.take_symbol("-") else ""
    value = cursor.here
    simple = value is not None and (
        value.kind in {TokenKind.STRING, TokenKind.NUMBER} or value.is_word("TRUE", "FALSE", "NULL")
    )
    if not simple:
        raise cursor.expected(f"the value of option '{key}' (a string, a number, true or false)")
    token = cursor.take()
    places, pieces = referring_pieces(cursor, token)
    return Option(key, sign + cursor.text_of(token), key_offset, value_offset, pieces, places)


def options_of_use(cursor: Cursor) -> tuple[Option, ...]:
    """The options that come next, as `WITH (...)` or `/*+ OPTIONS(...) */`; empty without any."""
    first, second, third = (cursor.peek(ahead) for ahead in range(3))
    if first and first.is_word("WITH") and second and second.is_symbol("("):
        cursor.index += 1
        return options(cursor)
    if (
        first
        and first.is_symbol("/*+")
        and second
        and second.is_word("OPTIONS")
        and third
        and third.is_symbol("(")
    ):
        cursor.index += 2
        found = options(cursor)
        if not cursor.take_symbol("*/"):
            raise cursor.expected("'*/'")
        return found
    return ()


class OptionsUse(NamedTuple):
    """Options behind a name in a query."""

    name: str
    start: int  # the offset of the name
    end: int  # that behind the options
    options: tuple[Option, ...]
    takes_alias: bool  # the query gives the table no alias of its own


def option_uses(passage: Passage) -> Iterator[OptionsUse]:
    """The names of one part with options, in order; raises SqlError for options that belong to no name.

    Spark itself reads the options behind a name of several parts, which is that of a table in a catalog.
    """
    tokens = passage.tokens
    cursor = Cursor(passage)
    for index, token in enumerate(tokens):
        if index < cursor.index or not _begins_options(tokens[index : index + 3]):
            continue
        cursor.index = index
        named = tokens[index - 1] if index else None
        before = tokens[index - 2] if index > 1 else None
        if named is None or named.kind not in _NAMES or named.is_word("SELECT"):
            raise cursor.error("options belong behind the name of a table")
        has_parts = before is not None and before.is_symbol(".")
        if has_parts and token.is_word("WITH"):
            continue
        if has_parts:
            raise cursor.error("the options of a table in a catalog are written as WITH (...)")
        found = options_of_use(cursor)
        if cursor.here and cursor.here.is_word("TABLESAMPLE"):
            raise cursor.error("TABLESAMPLE cannot follow options; give the table with its options a view")
        end = cursor.tokens[cursor.index - 1].end
        is_whole = before is not None and before.is_word("TABLE")  # TABLE t, which takes no alias
        takes_alias = not (is_whole or _is_alias(cursor.here))
        yield OptionsUse(name_value(named.text), named.start, end, found, takes_alias)


def _begins_options(tokens: Sequence[SqlToken]) -> bool:
    first, *following = tokens
    if first.is_word("WITH"):
        return bool(following) and following[0].is_symbol("(")
    return first.is_symbol("/*+") and bool(following) and following[0].is_word("OPTIONS")


def _is_alias(token: SqlToken | None) -> bool:
    return token is not None and token.kind in _NAMES and not token.is_word(*_BEHIND_TABLES)
