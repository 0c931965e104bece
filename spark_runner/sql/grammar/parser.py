"""Parses the heads of statements; Spark's own parser decides on every query, expression and type."""

from collections.abc import Callable, Mapping

from spark_runner.protocol.text import did_you_mean
from spark_runner.sql.grammar import catalog
from spark_runner.sql.grammar.assertion import assertion
from spark_runner.sql.grammar.cache import cache, uncache
from spark_runner.sql.grammar.create_function import create_function
from spark_runner.sql.grammar.create_table import create_table
from spark_runner.sql.grammar.explain import explain
from spark_runner.sql.grammar.insert import any_insert
from spark_runner.sql.grammar.option_references import refuse_elsewhere
from spark_runner.sql.grammar.query import QUERY_WORDS, begins_query, spark_query
from spark_runner.sql.grammar.settings import reset_statement, set_statement
from spark_runner.sql.grammar.statement_set import begin_set, begins_set, end_set
from spark_runner.sql.grammar.statements import (
    AnyStatement,
    CatalogStatement,
    CreateFunction,
    CreateTable,
    CreateView,
    Query,
    ResetStatement,
    SetStatement,
)
from spark_runner.sql.text.cursor import CLOSING, Cursor
from spark_runner.sql.text.errors import SqlError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import MAX_NESTING
from spark_runner.sql.text.tokens import SqlToken, TokenKind

SUPPORTED = (
    "a script may have SET, RESET, CREATE TABLE, CREATE VIEW, CREATE TEMPORARY FUNCTION, INSERT, statement"
    " sets, queries, ASSERT, EXPLAIN, CACHE TABLE and UNCACHE TABLE, and for catalogs MERGE, DELETE, USE,"
    " CREATE NAMESPACE, ANALYZE TABLE, REFRESH TABLE, SHOW and DESCRIBE"
)
_PARENTHESES = frozenset({*CLOSING, *CLOSING.values()})


def parse(passage: Passage) -> AnyStatement:
    """Parse one statement; raises SqlError for one that a script may not have."""
    statement = _parse(passage)
    refuse_elsewhere(statement, passage)
    if not isinstance(statement, SetStatement | ResetStatement):  # their values are any text
        _check_pairs(statement, passage)
    return statement


def _parse(passage: Passage) -> AnyStatement:
    cursor = Cursor(passage)
    _check_nesting(cursor)
    if begins_set(cursor):
        return begin_set(cursor)
    first = cursor.tokens[0]
    if first.kind is TokenKind.WORD and (parse_rest := _PARSERS.get(first.text.upper())):
        cursor.take()
        return parse_rest(cursor)
    if begins_query(cursor):
        return Query(passage, cursor.tokens, spark_query(cursor))
    raise _unsupported(cursor)


def _create(cursor: Cursor) -> CreateTable | CreateView | CreateFunction | CatalogStatement:
    is_plain = not (cursor.here and cursor.here.is_word("TEMPORARY", "TEMP", "OR"))
    if is_plain and catalog.begins_namespace(cursor):
        return catalog.create_namespace(cursor)
    replace = _take_modifiers(cursor)
    is_temporary = cursor.tokens[cursor.index - 1].is_word("TEMPORARY", "TEMP")
    if cursor.take_words("TABLE"):
        skipped = 3 if _follow(cursor, "IF", "NOT", "EXISTS") else 0
        if not is_temporary and catalog.names_catalog_table(cursor, ahead=skipped):
            return catalog.create_catalog_table(cursor, replace=replace)
        return create_table(cursor, replace=replace)
    if cursor.take_words("VIEW"):
        return _create_view(cursor, replace=replace)
    if cursor.here and cursor.here.is_word("FUNCTION") and not is_temporary:
        raise cursor.error("write CREATE TEMPORARY FUNCTION: a function ends with the script")
    if cursor.take_words("FUNCTION"):
        return create_function(cursor, replace=replace)
    raise _unsupported(cursor)


def _follow(cursor: Cursor, *words: str) -> bool:
    start = cursor.index
    found = cursor.take_words(*words)
    cursor.index = start
    return found


def _unsupported(cursor: Cursor) -> SqlError:
    found = cursor.here or cursor.tokens[0]
    word = cursor.written(found)
    known = _CREATED if cursor.index else _FIRST_WORDS
    is_near = found.kind is TokenKind.WORD and word.upper() not in known
    hint = (did_you_mean(word, known) if is_near else "") or f"; {SUPPORTED}"
    return cursor.error(f"'{word}' is not supported here{hint}", found.start)


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


def _check_pairs(statement: AnyStatement, passage: Passage) -> None:
    """Raise SqlError at a parenthesis without its counterpart, which Spark would refuse only in the run."""
    opened = list[SqlToken]()
    for token in statement.tokens:
        if token.kind is not TokenKind.SYMBOL or token.text not in _PARENTHESES:
            continue
        if token.text in CLOSING:
            opened.append(token)
        elif not opened or CLOSING[opened.pop().text] != token.text:
            raise passage.error(f"this '{token.text}' closes nothing", token.start)
    if opened:
        raise passage.error(f"this '{opened[-1].text}' is never closed", opened[-1].start)


def _create_view(cursor: Cursor, *, replace: bool) -> CreateView:
    name, name_offset = cursor.name("view")
    if not cursor.take_words("AS"):
        raise cursor.expected("AS and a query")
    return CreateView(cursor.passage, cursor.tokens, name, name_offset, replace, spark_query(cursor))


_PARSERS: Mapping[str, Callable[[Cursor], AnyStatement]] = {
    "ANALYZE": catalog.analyze,
    "ASSERT": assertion,
    "CACHE": cache,
    "CREATE": _create,
    "DELETE": catalog.delete,
    "DESC": catalog.describe,
    "DESCRIBE": catalog.describe,
    "END": end_set,
    "EXPLAIN": explain,
    "INSERT": any_insert,
    "MERGE": catalog.merge,
    "REFRESH": catalog.refresh,
    "RESET": reset_statement,
    "SET": set_statement,
    "SHOW": catalog.show,
    "UNCACHE": uncache,
    "USE": catalog.use,
    **dict.fromkeys(catalog.REFUSED_WORDS, catalog.refuse),
}
"""The parser of each statement, behind its first word."""

_FIRST_WORDS = sorted({*_PARSERS, *QUERY_WORDS} - {*catalog.REFUSED_WORDS})
_CREATED = ("TABLE", "VIEW", "TEMPORARY", "FUNCTION", "NAMESPACE", "DATABASE", "SCHEMA")
