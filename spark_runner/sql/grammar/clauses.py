"""Parses clauses without Spark: the columns of a table, and the beginning of a query."""

from collections.abc import Sequence
from itertools import pairwise

from spark_runner.sql.text.cursor import CLOSING, Cursor
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import SqlToken, TokenKind

_OPEN, _CLOSE = "(<[", ")>]"
_CONSTRAINTS = {
    ("PRIMARY", "KEY"),
    ("FOREIGN", "KEY"),
    ("UNIQUE", "("),
    ("CHECK", "("),
    ("WATERMARK", "FOR"),
}


def column_names(columns: Passage) -> tuple[str, ...]:
    """The names in `a INT, b STRING, ...`; the types are left to Spark.

    Raises SqlError at a definition that is missing, duplicate, or not a column.
    """
    cursor = Cursor(columns)
    names: dict[str, str] = {}
    while True:
        following = cursor.peek(1)
        pair = (cursor.here.text.upper() if cursor.here else "", following.text.upper() if following else "")
        if pair in _CONSTRAINTS or pair[0] == "CONSTRAINT":
            raise cursor.error(f"{pair[0]} is not supported; a table declares columns only")
        name, offset = cursor.name("column")
        if name.lower() in names:
            raise cursor.error(f"column '{name}' is declared twice", offset)
        names[name.lower()] = name
        cursor.take_symbol(":")
        if cursor.here is None or cursor.here.kind not in {TokenKind.WORD, TokenKind.QUOTED}:
            raise cursor.expected(f"the type of column '{name}'")
        _skip_definition(cursor)
        if cursor.peek() is None:
            return tuple(names.values())
        cursor.need_symbol(",")


def _skip_definition(cursor: Cursor) -> None:
    """Move to the comma behind this definition, or to the end."""
    depth = 0
    while cursor.here and not (depth == 0 and cursor.here.is_symbol(",")):
        token = cursor.take()
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text in _OPEN) - (token.text in _CLOSE)


QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_COMMANDS = ("INSERT", "DELETE", "UPDATE", "MERGE")  # `dmlStatementNoWith` in the grammar of Spark
_CLOSING = frozenset(CLOSING.values())


def query(cursor: Cursor) -> Passage:
    """The rest of the statement, which must be a query without commands; raises SqlError."""
    ahead = 0
    while (token := cursor.peek(ahead)) and token.is_symbol("("):
        ahead += 1
    if token is None or not token.is_word(*QUERY_WORDS):
        what = "a query (SELECT, WITH, VALUES, FROM or TABLE)"
        if ahead:
            what += "; a list of columns is not supported here, use BY NAME"
        raise cursor.expected(what)
    following = cursor.peek(ahead + 1)
    if token.is_word("WITH") and following and following.is_symbol("("):
        raise cursor.error("options belong to CREATE TABLE, not to INSERT", token.start)
    tokens = cursor.tokens[cursor.index :]
    found = _insert_in(tokens) or (_command_behind(tokens) if token.is_word("WITH") else None)
    if found:
        what = f"a query cannot hold {_article(found)}; end the statement before it with ';'"
        raise cursor.error(what, found.start)
    return cursor.rest()


def _article(command: SqlToken) -> str:
    word = command.text.upper()
    return f"an {word}" if word == "INSERT" else f"a {word}"


def _insert_in(tokens: Sequence[SqlToken]) -> SqlToken | None:
    """The INSERT of FROM t INSERT INTO u SELECT ...; a column may have that name."""
    for index, token in enumerate(tokens):
        if token.is_word("INSERT") and (behind := tokens[index + 1 : index + 3]):
            evolves = behind[0].is_word("WITH") and behind[-1].is_word("SCHEMA")
            if evolves or behind[0].is_word("INTO", "OVERWRITE"):
                return token
    return None


def _command_behind(tokens: Sequence[SqlToken]) -> SqlToken | None:
    """The command behind WITH a AS (...), b (...); None if a query follows."""
    depth = 0
    for token, behind in pairwise(tokens):
        if token.kind is not TokenKind.SYMBOL:
            continue
        depth += (token.text in CLOSING) - (token.text in _CLOSING)
        # AS, MAX or a parenthesis follows the columns of a definition, and a comma its query.
        between = behind.kind is TokenKind.SYMBOL or behind.is_word("AS", "MAX")
        if depth == 0 and token.is_symbol(")") and not between:
            return behind if behind.is_word(*_COMMANDS) else None
    return None
