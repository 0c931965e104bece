"""Decides whether a statement may run in a JVM that other jobs share: it may only compute.

A statement that reaches Java, a program or the settings of the JVM can end it, or read data of other jobs.
Its script gets a JVM of its own.
"""

import re
from collections.abc import Collection, Iterable

from spark_runner.sql.grammar import SetStatement, Statement
from spark_runner.sql.tokens import SqlToken, TokenKind

JAVA_FUNCTIONS = ("reflect", "java_method", "try_reflect")
"""Functions of Spark that call any static method of Java."""

# IDENTIFIER('re' || 'flect')(...) calls a function by a name that is not visible here.
_JAVA = frozenset({*map(str.upper, JAVA_FUNCTIONS), "IDENTIFIER"})
_SCRIPTS = frozenset({"TRANSFORM", "MAP", "REDUCE"})  # with USING they start a program
# Spark's own `${env:NAME}` reads the environment of the JVM.
_SUBSTITUTES = "spark.sql.variable.substitute"
_PLAIN_VALUE = re.compile(r"[\w\s:/+-]*|-?\d+\.\d+")  # not the name of a class, which has dots


def may_share(statement: Statement) -> bool:
    """Whether a statement may run there; in doubt it may not."""
    if isinstance(statement, SetStatement):
        return setting_may_share(statement.key, statement.value)
    return tokens_may_share(statement.tokens)


def setting_may_share(key: str, value: str) -> bool:
    """Whether a SET may run there."""
    key = key.lower()
    is_plain = _PLAIN_VALUE.fullmatch(value) is not None
    return key.startswith("spark.sql.") and key != _SUBSTITUTES and is_plain


def tokens_may_share(tokens: Iterable[SqlToken]) -> bool:
    """Whether a statement, or a part of one, may run there."""
    found = {name for token in tokens for name in _names(token)}
    return not found & _JAVA and not ("USING" in found and found & _SCRIPTS)


def _names(token: SqlToken) -> Collection[str]:
    """The names that Spark may read in a token: its lexer uses upper case, its function lookup lower case.

    The two differ beyond ASCII: upper case turns a long s into an S, lower case a Kelvin sign into a k.
    """
    if token.kind is TokenKind.QUOTED or (token.kind is TokenKind.STRING and token.text[0] == '"'):
        text = token.text[1:-1]  # a setting of Spark turns strings in double quotes into names
    elif token.kind is TokenKind.WORD:
        text = token.text
    else:
        return ()
    return (text.upper(), text.lower().upper())
