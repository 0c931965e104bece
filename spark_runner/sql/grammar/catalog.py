"""Parses statements on tables and namespaces of Spark catalogs; Spark's own parser decides on the rest."""

from collections.abc import Sequence
from typing import NoReturn

from spark_runner.sql.grammar.query import spark_query
from spark_runner.sql.grammar.references import format_name
from spark_runner.sql.grammar.statements import CatalogAction, CatalogStatement
from spark_runner.sql.grammar.windows import with_spark_functions
from spark_runner.sql.text.built_ins import has_mark, readable
from spark_runner.sql.text.cursor import CLOSING, Cursor
from spark_runner.sql.text.full_name import MAX_CHARACTERS, MAX_PARTS, FullName, full_name_at
from spark_runner.sql.text.tokens import SqlToken, TokenKind

_NAMESPACES = ("NAMESPACE", "DATABASE", "SCHEMA")
_SHOWN = ("CATALOGS", "NAMESPACES", "DATABASES", "SCHEMAS", "TABLES", "COLUMNS")
_CLOSING = frozenset(CLOSING.values())
_RERUN = "attempts of a job rerun, and a further one would find a changed table"
_REFUSED = {
    "ALTER": f"ALTER is refused: {_RERUN}; change the table once, outside of a job",
    "DROP": (
        "DROP is refused: names of a script end with it, and a table of a catalog would be missing when an"
        " attempt reruns; write CREATE OR REPLACE, or INSERT OVERWRITE"
    ),
    "TRUNCATE": f"TRUNCATE is refused: {_RERUN}; INSERT OVERWRITE replaces all rows at once",
    "UPDATE": f"UPDATE is refused: {_RERUN}; MERGE INTO sets values that stay the same when it reruns",
}


def names_catalog_table(cursor: Cursor, *, ahead: int = 0) -> bool:
    """Whether a name with a dot comes next."""
    found = full_name_at(cursor.tokens, cursor.index + ahead)
    return found is not None and len(found[0].parts) > 1


def insert_names_catalog_table(cursor: Cursor) -> bool:
    """Whether `INTO | OVERWRITE [TABLE]` and a name with a dot come next."""
    word = cursor.peek(1)
    ahead = 2 if word and word.is_word("TABLE") else 1
    return names_catalog_table(cursor, ahead=ahead)


def insert_into_catalog(cursor: Cursor) -> CatalogStatement:
    """The rest of an INSERT whose target `insert_names_catalog_table` has found; raises SqlError."""
    overwrite = cursor.take_words("OVERWRITE")
    if not overwrite and not cursor.take_words("INTO"):
        raise cursor.expected("INTO or OVERWRITE")
    cursor.take_words("TABLE")
    target = _table(cursor)
    if cursor.here and cursor.here.is_word("WITH", "PARTITION", "REPLACE"):
        following = cursor.peek(1)
        if not cursor.here.is_word("WITH") or (following and following.is_symbol("(")):
            message = f"an INSERT into a table of a catalog has no {cursor.written(cursor.here).upper()}"
            raise cursor.error(f"{message} here; write [BY NAME] and a query")
    cursor.take_words("BY", "NAME")
    start = cursor.offset
    action = CatalogAction.INSERT_OVERWRITE if overwrite else CatalogAction.INSERT_INTO
    query = spark_query(cursor)
    return CatalogStatement(cursor.passage, cursor.tokens, action, target, start, query)


def merge(cursor: Cursor) -> CatalogStatement:
    """`[WITH SCHEMA EVOLUTION] INTO target USING source ON ...` behind MERGE; raises SqlError."""
    if cursor.take_words("WITH", "SCHEMA", "EVOLUTION"):
        message = "a MERGE that changes the columns of its target is refused: only its first attempt would"
        raise cursor.error(message, cursor.tokens[1].start)
    if not cursor.take_words("INTO"):
        raise cursor.expected("INTO")
    target = _target(cursor, "MERGE INTO")
    _alias(cursor, "USING")
    if not cursor.take_words("USING"):
        raise cursor.expected("USING and a source")
    start, index = cursor.offset, cursor.index
    source = None
    if not (cursor.here and cursor.here.is_symbol("(")):
        source = _name(cursor, "source")
    _need_parts(cursor, "ON", "WHEN")
    cursor.index = index
    return CatalogStatement(
        cursor.passage,
        cursor.tokens,
        CatalogAction.MERGE,
        target,
        start,
        with_spark_functions(cursor.rest()),
        source,
    )


def delete(cursor: Cursor) -> CatalogStatement:
    """`FROM target WHERE condition` behind DELETE; raises SqlError."""
    if not cursor.take_words("FROM"):
        raise cursor.expected("FROM")
    target = _target(cursor, "DELETE FROM")
    _alias(cursor, "WHERE")
    if not cursor.take_words("WHERE"):
        raise cursor.expected("WHERE and a condition; to delete all rows, write WHERE true")
    start = cursor.offset
    if cursor.here is None:
        raise cursor.expected("a condition")
    condition = with_spark_functions(cursor.rest())
    return CatalogStatement(cursor.passage, cursor.tokens, CatalogAction.DELETE, target, start, condition)


def create_catalog_table(cursor: Cursor, *, replace: bool) -> CatalogStatement:
    """The rest of a CREATE TABLE from `[IF NOT EXISTS] name` on; raises SqlError."""
    at = cursor.offset
    only_if_missing = cursor.take_words("IF", "NOT", "EXISTS")
    table = _table(cursor)
    if not (only_if_missing or replace):
        message = f"write CREATE TABLE IF NOT EXISTS, or CREATE OR REPLACE TABLE, because {_RERUN}"
        raise cursor.error(message, at)
    depth = 0
    for index in range(cursor.index, len(cursor.tokens)):
        token = cursor.tokens[index]
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text in CLOSING) - (token.text in _CLOSING)
        elif index > cursor.index and token.is_word("AS") and cursor.tokens[index - 1].is_word("STORED"):
            continue  # STORED AS names the format of a table of Hive
        elif depth == 0 and token.is_word("AS", "SELECT", "VALUES", "FROM", "LIKE"):
            message = "a table of a catalog is created with its columns; write its rows by an INSERT"
            raise cursor.error(message, token.start)
    return CatalogStatement(cursor.passage, cursor.tokens, CatalogAction.CREATE_TABLE, table, replace=replace)


def create_namespace(cursor: Cursor) -> CatalogStatement:
    """`IF NOT EXISTS name` behind CREATE NAMESPACE; raises SqlError."""
    if not cursor.take_words("IF", "NOT", "EXISTS"):
        raise cursor.expected(f"IF NOT EXISTS, because {_RERUN}")
    name = _name(cursor, "namespace")
    return CatalogStatement(cursor.passage, cursor.tokens, CatalogAction.CREATE_NAMESPACE, name)


def begins_namespace(cursor: Cursor) -> bool:
    """Skip NAMESPACE or a synonym of it; returns whether it was there."""
    return any(cursor.take_words(word) for word in _NAMESPACES)


def use(cursor: Cursor) -> CatalogStatement:
    """`CATALOG name`, `[NAMESPACE | DATABASE | SCHEMA] name` behind USE; raises SqlError."""
    following = cursor.peek(1)
    has_word = following is not None and not following.is_symbol(".")
    action = CatalogAction.USE
    if has_word and cursor.take_words("CATALOG"):
        action = CatalogAction.USE_CATALOG
    elif has_word:
        begins_namespace(cursor)
    what = "catalog" if action is CatalogAction.USE_CATALOG else "namespace"
    name = _name(cursor, what)
    if action is CatalogAction.USE_CATALOG and len(name.parts) > 1:
        raise cursor.error("the name of a catalog has one part; write USE catalog.namespace", name.offset)
    cursor.finish(f"USE has the name of one {what}")
    return CatalogStatement(cursor.passage, cursor.tokens, action, name)


def analyze(cursor: Cursor) -> CatalogStatement:
    """`TABLE name COMPUTE STATISTICS` behind ANALYZE; raises SqlError."""
    if not cursor.take_words("TABLE"):
        raise cursor.expected("TABLE")
    table = _target(cursor, "ANALYZE TABLE")
    return CatalogStatement(cursor.passage, cursor.tokens, CatalogAction.ANALYZE, table)


def refresh(cursor: Cursor) -> CatalogStatement:
    """`TABLE name` behind REFRESH; raises SqlError."""
    if not cursor.take_words("TABLE"):
        raise cursor.expected("TABLE")
    table = _target(cursor, "REFRESH TABLE")
    cursor.finish("REFRESH TABLE has the name of one table")
    return CatalogStatement(cursor.passage, cursor.tokens, CatalogAction.REFRESH, table)


def show(cursor: Cursor) -> CatalogStatement:
    """What behind SHOW lists names of a catalog; raises SqlError."""
    if cursor.here is None or not cursor.here.is_word(*_SHOWN):
        raise cursor.expected(" or ".join((", ".join(_SHOWN[:-1]), _SHOWN[-1])))
    return CatalogStatement(cursor.passage, cursor.tokens, CatalogAction.SHOW, None)


def describe(cursor: Cursor) -> CatalogStatement:
    """`[TABLE] name` behind DESCRIBE; raises SqlError."""
    cursor.take_words("TABLE")
    table = _target(cursor, "DESCRIBE")
    cursor.finish("DESCRIBE has the name of one table")
    return CatalogStatement(cursor.passage, cursor.tokens, CatalogAction.DESCRIBE, table)


def refuse(cursor: Cursor) -> NoReturn:
    """Raise SqlError with the reason why a script has no such statement, and what to do instead."""
    word = cursor.tokens[0].text.upper()
    raise cursor.error(_REFUSED[word], cursor.tokens[0].start)


REFUSED_WORDS = tuple(_REFUSED)


def table_format(tokens: Sequence[SqlToken]) -> str:
    """The lower-case format that CREATE TABLE names behind USING; empty without one.

    The name of a class has dots.
    """
    depth = 0
    for index, token in enumerate(tokens[:-1]):
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text in CLOSING) - (token.text in _CLOSING)
        elif depth == 0 and token.is_word("USING"):
            more = index + 2 < len(tokens) and tokens[index + 2].is_symbol(".")
            return format_name(tokens[index + 1]) + "." * more
    return ""


def _need_parts(cursor: Cursor, *words: str) -> None:
    """Skip to each of these words, outside of parentheses; raises SqlError for one that is missing."""
    depth, missing = 0, list(words)
    while missing:
        token = cursor.here
        if token is None:
            raise cursor.expected(missing[0])
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text in CLOSING) - (token.text in _CLOSING)
        elif depth == 0 and token.is_word(missing[0]):
            missing.pop(0)
        cursor.index += 1


def _table(cursor: Cursor) -> FullName:
    return _name(cursor, "table")


def _target(cursor: Cursor, statement: str) -> FullName:
    found = _table(cursor)
    if len(found.parts) == 1:
        message = f"{statement} needs a table of a catalog, with all parts of its name: catalog.db.table"
        raise cursor.error(message, found.offset)
    return found


def _name(cursor: Cursor, what: str) -> FullName:
    """The name that comes next, with all its parts."""
    found = full_name_at(cursor.tokens, cursor.index)
    if found is None:
        raise cursor.expected(f"the name of a {what}")
    name, end = found
    for token in cursor.tokens[cursor.index : end]:
        if has_mark(token.text):
            message = (
                f"{readable(token.text)} has no value yet when the script is checked; write a name without it"
            )
            raise cursor.error(message, token.start)
    if name.is_too_long:
        message = f"the name of a {what} has up to {MAX_PARTS} parts and {MAX_CHARACTERS} characters"
        raise cursor.error(message)
    cursor.index = end
    return name


def _alias(cursor: Cursor, following: str) -> None:
    """Skip an alias, with or without AS."""
    cursor.take_words("AS")
    if cursor.here and not cursor.here.is_word(following):
        if cursor.here.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
            raise cursor.expected(following)
        cursor.take()
