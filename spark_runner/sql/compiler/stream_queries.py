"""Clauses of a query that Spark refuses where its rows are a stream."""

from collections.abc import Sequence
from itertools import pairwise

from spark_runner.sql.compiler.names import Table
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import SqlToken

_SETS = ("UNION", "INTERSECT", "EXCEPT", "MINUS")


def check_clauses(query: Passage, streams: Sequence[Table], mode: str) -> None:
    """Raise SqlError for a sort, or an aggregation without a watermark, of all rows of an INSERT.

    Parts in parentheses may read other tables; the analysis by Spark sees them.
    """
    has_watermark = any(table.step.get("watermark") for table in streams)
    tokens = _outer(query.tokens)
    may_aggregate = has_watermark or any(token.is_word(word) for token in tokens for word in _SETS)
    for token, following in pairwise(tokens):
        if following.is_word("BY") and (token.is_word("ORDER") or token.is_word("SORT")):
            message = f"in mode '{mode}' rows have no order: remove {token.text} BY, or use mode 'batch'"
            raise query.error(message, token.start)
        is_group = token.is_word("GROUP") and following.is_word("BY")
        is_distinct = token.is_word("SELECT") and following.is_word("DISTINCT")
        if (is_group or is_distinct) and not may_aggregate:
            at = token if is_group else following
            what = "GROUP BY" if is_group else "DISTINCT"
            message = (
                f"{what} in mode '{mode}' needs WATERMARK FOR in '{streams[0].name}', or use mode 'batch'"
            )
            raise query.error(message, at.start)


def _outer(tokens: Sequence[SqlToken]) -> list[SqlToken]:
    """The tokens outside of parentheses."""
    outer, depth = list[SqlToken](), 0
    for token in tokens:
        depth -= token.text == ")"
        if depth == 0:
            outer.append(token)
        depth += token.text == "("
    return outer
