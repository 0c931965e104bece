"""Clauses of a query that Spark refuses where its rows are a stream."""

from collections.abc import Sequence
from itertools import pairwise

from spark_runner.sql.compiler.names import Reads, Table
from spark_runner.sql.grammar.statement_set import OUTSIDE_OF_SET
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import SqlToken, TokenKind

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


def check_in_set(query: Passage, reads: Reads, shared: Table | None, mode: str) -> Table | None:
    """The stream that all INSERTs of a statement set read: `shared`, or that of the first INSERT.

    Raises SqlError for an INSERT of another stream, and for one with a state. The analysis by Spark sees
    states in views and in parentheses.
    """
    streams = [table for table in reads.tables.values() if table.spec.streams]
    if shared is not None and all(each is not shared for each in streams):
        streams.insert(0, shared)
    if len(streams) > 1:
        message = (
            f"in mode '{mode}' all INSERTs of a statement set read the same stream, and here are"
            f" '{streams[0].step['name']}' and '{streams[1].step['name']}'; {OUTSIDE_OF_SET}"
        )
        raise query.error(message, 0)
    if reads.file_names:
        message = (
            f"in mode '{mode}' an INSERT of a statement set finds no names of files; declare a column with"
            f" METADATA FROM 'file_path', or {OUTSIDE_OF_SET}"
        )
        raise query.error(message, 0)
    for token, following in () if reads.has_invalid else pairwise(_outer(query.tokens)):
        if _has_state(token, following):
            message = (
                f"{token.text.upper()} {following.text.upper()} needs rows of earlier micro-batches, which no"
                f" INSERT of a statement set has in mode '{mode}'; {OUTSIDE_OF_SET}"
            )
            raise query.error(message, token.start)
    return streams[0] if streams else None


def _has_state(token: SqlToken, following: SqlToken) -> bool:
    if token.is_word("LIMIT"):
        return following.kind is TokenKind.NUMBER
    return (token.is_word("GROUP") and following.is_word("BY")) or (
        token.is_word("SELECT") and following.is_word("DISTINCT")
    )


def _outer(tokens: Sequence[SqlToken]) -> list[SqlToken]:
    """The tokens outside of parentheses."""
    outer, depth = list[SqlToken](), 0
    for token in tokens:
        depth -= token.text == ")"
        if depth == 0:
            outer.append(token)
        depth += token.text == "("
    return outer
