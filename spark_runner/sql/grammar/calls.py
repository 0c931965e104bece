"""Finds the names of the functions that a statement calls, without Spark."""

import re
from collections.abc import Iterator, Sequence

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


def calls(tokens: Sequence[SqlToken]) -> Iterator[tuple[str, int]]:
    """The lower-case names before a parenthesis, with their offsets; each perhaps several times.

    Names of other things may be among them, such as an alias with columns.
    """
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
            yield name.lower(), token.start
