"""Parses INSERT, into a table of the script or of a catalog."""

from spark_runner.sql.grammar.catalog import insert_into_catalog, insert_names_catalog_table
from spark_runner.sql.grammar.options import options_of_use
from spark_runner.sql.grammar.query import QUERY_WORDS, spark_query
from spark_runner.sql.grammar.statements import CatalogStatement, Insert
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.full_name import full_name_at
from spark_runner.sql.text.tokens import TokenKind


def any_insert(cursor: Cursor) -> Insert | CatalogStatement:
    """The rest of the statement behind INSERT, whichever target it has; raises SqlError."""
    return insert_into_catalog(cursor) if insert_names_catalog_table(cursor) else insert(cursor)


def insert(cursor: Cursor) -> Insert:
    """Likewise, for a table of the script; raises SqlError also for one of a catalog."""
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
    found = full_name_at(cursor.tokens, cursor.index)
    if found is not None and len(found[0].parts) > 1:
        raise cursor.error("an INSERT into a table of a catalog cannot be explained; EXPLAIN its query alone")
    target, target_offset = cursor.name("table")
    options = options_of_use(cursor)
    by_name = cursor.take_words("BY", "NAME")
    return Insert(
        cursor.passage, cursor.tokens, target, target_offset, overwrite, by_name, spark_query(cursor), options
    )
