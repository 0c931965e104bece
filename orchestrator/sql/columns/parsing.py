"""Parses queries and expressions with sqlglot, which is imported here only; what it cannot read is None.

sqlglot is slower than the compiler and recursive, so it gets no text beyond these limits.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from spark_runner.sql.text.built_ins import as_numbers
from spark_runner.sql.text.cursor import CLOSING
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource
from spark_runner.sql.text.tokens import SqlToken, TokenKind, tokenize

EXPRESSION_HEAD = "SELECT "
MAX_CHARACTERS = 20_000  # of one query
MAX_SCRIPT_CHARACTERS = 128 * 1024  # of all queries of a script
MAX_NESTING = 30  # open parentheses; some of them double the time of sqlglot's parser
MAX_OPERATORS = 400  # of one query that nest in the tree of sqlglot without a parenthesis, as in a + b + c

# What sqlglot reads differently from Spark, and what gives columns of which the text shows no names.
_UNREADABLE = frozenset(
    {
        *("IDENTIFIER", "LATERAL", "PIVOT", "UNPIVOT", "RECURSIVE", "UNNEST", "TABLE"),
        *("MATCH_RECOGNIZE", "COLLATE", "STREAM", "QUALIFY", "DECLARE", "EXECUTE"),
        *("EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "POSEXPLODE_OUTER", "INLINE", "INLINE_OUTER"),
        *("STACK", "JSON_TUPLE", "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER"),
    }
)
_OPERATORS = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS", "AND", "OR", "NOT", "CASE", "JOIN"})
_CLOSING = frozenset(CLOSING.values())

_SPARK = Spark()
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it warns of syntax that it does not know


@dataclass
class Parser:
    """Parses the queries of one script, within the limits."""

    left: int = MAX_SCRIPT_CHARACTERS

    def query(self, passage: Passage) -> exp.Expr | None:
        """The tree of a query, with offsets in the text of the passage."""
        return self._parsed(passage, "")

    def expression(self, passage: Passage) -> exp.Expr | None:
        """The tree of an expression, as the only column of a query that begins with EXPRESSION_HEAD."""
        return self._parsed(passage, EXPRESSION_HEAD)

    def _parsed(self, passage: Passage, head: str) -> exp.Expr | None:
        if len(passage.text) > min(MAX_CHARACTERS, self.left) or not _is_readable(
            passage.text, passage.tokens
        ):
            return None
        self.left -= len(passage.text)
        try:
            found = _SPARK.parse(head + as_numbers(_readable_windows(passage)))
        except Exception:  # noqa: BLE001 - sqlglot raises more than its own errors for what it cannot read
            return None
        root = found[0] if len(found) == 1 else None
        return root if isinstance(root, exp.Query | exp.Values) else None


def _readable_windows(passage: Passage) -> str:
    """The text with a name of the same length for window(), which sqlglot takes for the clause WINDOW."""
    text = passage.text
    for token, behind in pairwise(passage.tokens):
        if token.is_word("WINDOW") and behind.is_symbol("("):
            text = f"{text[: token.start]}win_ow{text[token.end :]}"
    return text


def _is_readable(text: str, tokens: Sequence[SqlToken]) -> bool:
    if "|>" in text:  # the pipe of Spark 4
        return False
    depth = operators = 0
    for token in tokens:
        if token.kind is TokenKind.SYMBOL:
            depth += (token.text in CLOSING) - (token.text in _CLOSING)
            operators += token.text in "+-*/%|&^!~<>="
        elif token.kind is TokenKind.WORD:
            word = token.text.upper()
            if word in _UNREADABLE:
                return False
            operators += word in _OPERATORS
        elif token.kind is TokenKind.QUOTED and token.text[1:-1].upper() in _UNREADABLE:
            return False
        if depth > MAX_NESTING or operators > MAX_OPERATORS:
            return False
    return True


def same_meaning(one: str, other: str) -> bool:
    """Whether sqlglot reads two queries alike, down to the case of names; False if it cannot read them."""
    if len(one) > MAX_CHARACTERS or not _is_readable(one, list(tokenize(ScriptSource("", one)))):
        return False
    try:
        trees = [_SPARK.parse(text) for text in (one, other)]
    except Exception:  # noqa: BLE001 - as above
        return False
    (first, *others), (second, *_) = trees
    return not others and isinstance(first, exp.Query | exp.Values) and first == second
