"""Parses EXPLAIN."""

from spark_runner.sql.grammar.insert import insert
from spark_runner.sql.grammar.query import begins_query, spark_query
from spark_runner.sql.grammar.statement_set import begins_set
from spark_runner.sql.grammar.statements import Explain
from spark_runner.sql.text.cursor import Cursor

_MODES = ("EXTENDED", "FORMATTED", "COST", "CODEGEN")


def explain(cursor: Cursor) -> Explain:
    """The mode and the query or INSERT behind EXPLAIN; raises SqlError."""
    mode = next((word.lower() for word in _MODES if cursor.take_words(word)), "simple")
    if begins_set(cursor):
        raise cursor.error("EXPLAIN of a statement set is not supported; write EXPLAIN before each INSERT")
    if begins_query(cursor):
        return Explain(cursor.passage, cursor.tokens, mode, spark_query(cursor), None)
    inner = Cursor(cursor.rest()) if cursor.here and cursor.here.is_word("INSERT") else None
    if inner is None:
        raise cursor.expected("a query or an INSERT")
    _ = inner.take_words("INSERT")
    explained = insert(inner)
    return Explain(cursor.passage, cursor.tokens, mode, explained.query, explained)
