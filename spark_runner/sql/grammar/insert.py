"""Parses INSERT."""

from spark_runner.sql.grammar.options import options_of_use
from spark_runner.sql.grammar.query import QUERY_WORDS, spark_query
from spark_runner.sql.grammar.statements import Insert
from spark_runner.sql.text.cursor import Cursor
from spark_runner.sql.text.full_name import full_name_at
from spark_runner.sql.text.tokens import TokenKind


def insert(cursor: Cursor) -> Insert:
    """The rest of the statement behind INSERT; raises SqlError."""
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
        message = "an INSERT into a table of a catalog can be neither explained nor part of a statement set"
        raise cursor.error(message)
    target, target_offset = cursor.name("table")
    options = options_of_use(cursor)
    by_name = cursor.take_words("BY", "NAME")
    return Insert(
        cursor.passage, cursor.tokens, target, target_offset, overwrite, by_name, spark_query(cursor), options
    )
