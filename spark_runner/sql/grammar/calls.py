"""Finds the names of the functions that a statement calls, without Spark."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spark_runner.sql.text.literals import name_value
from spark_runner.sql.text.tokens import SqlToken, TokenKind

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
"""A name that a function may have: Spark compares such names without case, as Python does."""

_WORDS = """
ALL AND ANTI AS ASC BETWEEN BY CACHE CASE CHECK CLUSTER COMPUTED COLUMNS CONSTRAINT CREATE CROSS CUBE
DEC DECIMAL DESC DISTINCT DISTRIBUTE ELSE END EXCEPT EXPECT FILTER FOR FROM FULL FUNCTION GENERATED GROUP
GROUPING HAVING IN INNER INSERT INTERSECT INTO IS JOIN KEY LATERAL LIMIT MINUS NATURAL NOT NULL NUMERIC
OFFSET ON OPTIONS OR ORDER OUTER OVER OVERWRITE PARTITION PIVOT PRIMARY RANGE REPLACE RESET RETURNS ROLLUP
ROWS SELECT SEMI SET SETS SORT STRUCT TABLE TABLESAMPLE THEN TRANSFORM UNCACHE UNION UNPIVOT USING VALUES
VARCHAR VIEW WHEN WHERE WINDOW WITH WITHIN
TUMBLE TUMBLE_START TUMBLE_END TUMBLE_ROWTIME TUMBLE_PROCTIME HOP HOP_START HOP_END HOP_ROWTIME
HOP_PROCTIME SESSION SESSION_START SESSION_END SESSION_ROWTIME SESSION_PROCTIME PROCTIME IDENTIFIER
ASSERT CODEGEN COST EXPLAIN EXTENDED FORMATTED
BROADCAST BROADCASTJOIN MAPJOIN MERGE REBALANCE REPARTITION REPARTITION_BY_RANGE SHUFFLE_HASH SHUFFLE_MERGE
SHUFFLE_REPLICATE_NL
"""
NO_FUNCTIONS = frozenset(_WORDS.split())
"""Words before a parenthesis that are SQL, or hints, or functions of streaming SQL engines."""

_BEFORE_TABLES = ("TABLE", "INTO", "OVERWRITE", "VIEW")
_BEFORE_EXPRESSIONS = (
    *(
        "SELECT",
        "DISTINCT",
        "WHERE",
        "HAVING",
        "BY",
        "ON",
        "AND",
        "OR",
        "NOT",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
    ),
    *("BETWEEN", "LIKE", "ASSERT"),
)
_BEFORE_OPERANDS = frozenset("=<>+-*/%|&^!")


class Call(NamedTuple):
    """A lower-case name before a parenthesis, and its offset.

    It may be that of another thing, such as an alias with columns, unless `is_certain`.
    """

    name: str
    offset: int
    is_certain: bool


def calls(tokens: Sequence[SqlToken]) -> Iterator[Call]:
    """The names before a parenthesis; each perhaps several times."""
    for index, opening in enumerate(tokens):
        if opening.text != "(" or not index:
            continue
        token = tokens[index - 1]
        if token.kind is not TokenKind.WORD and token.kind is not TokenKind.QUOTED:
            continue
        if token.text.upper() in NO_FUNCTIONS and token.kind is TokenKind.WORD:
            continue
        if index > 1 and tokens[index - 2].is_word(*_BEFORE_TABLES):
            continue
        name = name_value(token.text)
        if PLAIN_NAME.fullmatch(name):
            before = tokens[index - 2] if index > 1 else None
            is_certain = before is not None and (
                before.is_word(*_BEFORE_EXPRESSIONS)
                or (before.kind is TokenKind.SYMBOL and before.text in _BEFORE_OPERANDS)
            )
            yield Call(name.lower(), token.start, is_certain)
