"""Parses the heads of statements; Spark's own parser decides on every query, expression and type."""

from collections.abc import Callable, Mapping

from spark_runner.sql.grammar.assertion import assertion
from spark_runner.sql.grammar.cache import cache, uncache
from spark_runner.sql.grammar.create_table import create_table
from spark_runner.sql.grammar.explain import explain
from spark_runner.sql.grammar.insert import insert
from spark_runner.sql.grammar.query import begins_query, query
from spark_runner.sql.grammar.statement_set import begin_set, begins_set, end_set
from spark_runner.sql.grammar.statements import (
    Assert,
    BeginSet,
    Cache,
    CreateTable,
    CreateView,
    EndSet,
    Explain,
    Insert,
    Query,
    SetStatement,
    Uncache,
)
from spark_runner.sql.text.cursor import CLOSING, Cursor
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import MAX_NESTING
from spark_runner.sql.text.tokens import TokenKind

SUPPORTED = (
    "a script may have SET, CREATE TABLE, CREATE VIEW, INSERT, statement sets, queries, ASSERT, EXPLAIN,"
    " CACHE TABLE and UNCACHE TABLE"
)
_PARENTHESES = frozenset({*CLOSING, *CLOSING.values()})


AnyStatement = (
    SetStatement
    | CreateTable
    | CreateView
    | Insert
    | Query
    | Assert
    | BeginSet
    | EndSet
    | Explain
    | Cache
    | Uncache
)


def parse(passage: Passage) -> AnyStatement:
    """Parse one statement; raises SqlError for one that a script may not have."""
    cursor = Cursor(passage)
    _check_nesting(cursor)
    if begins_set(cursor):
        return begin_set(cursor)
    if begins_query(cursor):
        return Query(passage, cursor.tokens, query(cursor))
    for word, rest in _BY_FIRST_WORD.items():
        if cursor.take_words(word):
            return rest(cursor)
    raise _unsupported(cursor)


def _unsupported(cursor: Cursor) -> SqlError:
    found = cursor.here or cursor.tokens[0]
    return cursor.error(f"'{found.text}' is not supported here; {SUPPORTED}", found.start)


def declared_name(passage: Passage) -> tuple[str, int] | None:
    """The name that a statement declares, and its offset; None if it declares none, or none can be read."""
    cursor = Cursor(passage)
    if not cursor.take_words("CREATE"):
        return None
    _take_modifiers(cursor)
    if not (cursor.take_words("TABLE") or cursor.take_words("VIEW")):
        return None
    try:
        return cursor.name("table")
    except SqlError:
        return None


def _take_modifiers(cursor: Cursor) -> bool:
    """Skip `OR REPLACE` and `TEMPORARY`; returns whether the first was there. All names are temporary."""
    replace = cursor.take_words("OR", "REPLACE")
    _ = cursor.take_words("TEMPORARY") or cursor.take_words("TEMP")
    return replace


def _check_nesting(cursor: Cursor) -> None:
    depth = 0
    for token in cursor.tokens:
        if token.kind is TokenKind.SYMBOL and token.text in _PARENTHESES:
            depth += 1 if token.text in CLOSING else -1
            if depth > MAX_NESTING:
                message = f"more than {MAX_NESTING} parentheses are open here, which is the limit"
                raise cursor.error(message, token.start)


def _set(cursor: Cursor) -> SetStatement:
    start = cursor.index
    while cursor.here and not cursor.here.is_symbol("="):
        cursor.take()
    key = _setting_text(cursor, start)
    if not key or any(char.isspace() for char in key):
        raise cursor.error("write SET key = value", cursor.tokens[0].start)
    if cursor.here is None:
        raise cursor.expected("'=' and a value")
    cursor.need_symbol("=")
    start = cursor.index
    if cursor.here is None:
        raise cursor.expected("a value")
    cursor.index = len(cursor.tokens)
    return SetStatement(cursor.passage, cursor.tokens, key, _setting_text(cursor, start))


def _setting_text(cursor: Cursor, start: int) -> str:
    """The text from token `start` up to the cursor; of a single string its value."""
    tokens = cursor.tokens[start : cursor.index]
    if not tokens:
        return ""
    if len(tokens) == 1:
        return cursor.text_of(tokens[0])
    return cursor.passage.text[tokens[0].start : tokens[-1].end]


def _create(cursor: Cursor) -> CreateTable | CreateView:
    replace = _take_modifiers(cursor)
    if cursor.take_words("TABLE"):
        return create_table(cursor, replace=replace)
    if cursor.take_words("VIEW"):
        return _create_view(cursor, replace=replace)
    raise _unsupported(cursor)


def _create_view(cursor: Cursor, *, replace: bool) -> CreateView:
    name, name_offset = cursor.name("view")
    if not cursor.take_words("AS"):
        raise cursor.expected("AS and a query")
    return CreateView(cursor.passage, cursor.tokens, name, name_offset, replace, query(cursor))


_BY_FIRST_WORD: Mapping[str, Callable[[Cursor], AnyStatement]] = {
    "SET": _set,
    "CREATE": _create,
    "INSERT": insert,
    "END": end_set,
    "ASSERT": assertion,
    "EXPLAIN": explain,
    "CACHE": cache,
    "UNCACHE": uncache,
}
