"""Parses the heads of statements; Spark's own parser decides on every query, expression and type."""

from spark_runner.sql.grammar.create_table import create_table
from spark_runner.sql.grammar.query import QUERY_WORDS, query
from spark_runner.sql.grammar.settings import reset_statement, set_statement
from spark_runner.sql.grammar.statements import CreateTable, CreateView, Insert, ResetStatement, SetStatement
from spark_runner.sql.text.cursor import CLOSING, Cursor
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import MAX_NESTING
from spark_runner.sql.text.tokens import TokenKind

SUPPORTED = "a script may have SET, RESET, CREATE TABLE, CREATE VIEW, INSERT INTO and INSERT OVERWRITE"
_PARENTHESES = frozenset({*CLOSING, *CLOSING.values()})


def parse(passage: Passage) -> SetStatement | ResetStatement | CreateTable | CreateView | Insert:
    """Parse one statement; raises SqlError for one that a script may not have."""
    cursor = Cursor(passage)
    _check_nesting(cursor)
    if cursor.take_words("SET"):
        return set_statement(cursor)
    if cursor.take_words("RESET"):
        return reset_statement(cursor)
    if cursor.take_words("INSERT"):
        return _insert(cursor)
    if cursor.take_words("CREATE"):
        replace = _take_modifiers(cursor)
        if cursor.take_words("TABLE"):
            return create_table(cursor, replace=replace)
        if cursor.take_words("VIEW"):
            return _create_view(cursor, replace=replace)
    found = cursor.here or cursor.tokens[0]
    raise cursor.error(f"'{found.text}' is not supported here; {SUPPORTED}", found.start)


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


def _create_view(cursor: Cursor, *, replace: bool) -> CreateView:
    name, name_offset = cursor.name("view")
    if not cursor.take_words("AS"):
        raise cursor.expected("AS and a query")
    return CreateView(cursor.passage, cursor.tokens, name, name_offset, replace, query(cursor))


def _insert(cursor: Cursor) -> Insert:
    overwrite = cursor.take_words("OVERWRITE")
    if not overwrite and not cursor.take_words("INTO"):
        raise cursor.expected("INTO or OVERWRITE")
    # TABLE may precede the name, and a table may be named `table`.
    following = cursor.peek(1)
    if (
        following
        and following.kind in {TokenKind.WORD, TokenKind.QUOTED}
        and not following.is_word(*QUERY_WORDS, "BY")
    ):
        cursor.take_words("TABLE")
    target, target_offset = cursor.name("table")
    by_name = cursor.take_words("BY", "NAME")
    return Insert(cursor.passage, cursor.tokens, target, target_offset, overwrite, by_name, query(cursor))
