"""Parses CACHE TABLE and UNCACHE TABLE."""

from spark_runner.sql.grammar.statements import Cache, Uncache
from spark_runner.sql.text.cursor import Cursor

_HINT = "a script caches its tables and views as they are declared"


def cache(cursor: Cursor) -> Cache:
    """`[LAZY] TABLE name` behind CACHE; raises SqlError."""
    lazy = cursor.take_words("LAZY")
    if not cursor.take_words("TABLE"):
        raise cursor.expected("TABLE")
    name, offset = cursor.name("table or view")
    cursor.finish(_HINT)
    return Cache(cursor.passage, cursor.tokens, name, offset, lazy)


def uncache(cursor: Cursor) -> Uncache:
    """`TABLE [IF EXISTS] name` behind UNCACHE; raises SqlError."""
    if not cursor.take_words("TABLE"):
        raise cursor.expected("TABLE")
    if_exists = cursor.take_words("IF", "EXISTS")
    name, offset = cursor.name("table or view")
    cursor.finish(_HINT)
    return Uncache(cursor.passage, cursor.tokens, name, offset, if_exists)
