"""Checks the beginning of a query, and that it holds no command."""

from collections.abc import Sequence
from itertools import pairwise

from spark_runner.sql.grammar.windows import with_spark_functions
from spark_runner.sql.text.cursor import CLOSING, Cursor
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import SqlToken, TokenKind

QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_COMMANDS = ("INSERT", "DELETE", "UPDATE", "MERGE")  # `dmlStatementNoWith` in the grammar of Spark
_CLOSING = frozenset(CLOSING.values())


def begins_query(cursor: Cursor) -> bool:
    """Whether a query comes next, perhaps in parentheses."""
    token = cursor.peek(_parentheses(cursor))
    return token is not None and token.is_word(*QUERY_WORDS)


def spark_query(cursor: Cursor) -> Passage:
    """The rest of the statement, a query with functions of Spark; raises SqlError."""
    return with_spark_functions(query(cursor))


def query(cursor: Cursor) -> Passage:
    """The rest of the statement, which must be a query without commands; raises SqlError."""
    ahead = _parentheses(cursor)
    token = cursor.peek(ahead)
    if token is None or not token.is_word(*QUERY_WORDS):
        what = "a query (SELECT, WITH, VALUES, FROM or TABLE)"
        if ahead:
            what += "; a list of columns is not supported here, use BY NAME"
        raise cursor.expected(what)
    following = cursor.peek(ahead + 1)
    if following is None:
        cursor.index += ahead + 1
        raise cursor.expected(f"more behind {token.text.upper()}")
    if token.is_word("WITH") and following and following.is_symbol("("):
        raise cursor.error("options belong behind the name of a table", token.start)
    tokens = cursor.tokens[cursor.index :]
    found = _insert_in(tokens) or (_command_behind(tokens) if token.is_word("WITH") else None)
    if found:
        what = f"a query cannot hold {_article(found)}; end the statement before it with ';'"
        raise cursor.error(what, found.start)
    return cursor.rest()


def _parentheses(cursor: Cursor) -> int:
    """The number of parentheses that open here."""
    ahead = 0
    while (token := cursor.peek(ahead)) and token.is_symbol("("):
        ahead += 1
    return ahead


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
