"""Rewrites COUNT(DISTINCT ...) for streams, where Spark has no distinct aggregates.

The set of the distinct values has the same size, and Spark keeps it in the state of the query.
"""

from spark_runner.sql.grammar.windows import call_arguments, is_call
from spark_runner.sql.text.passage import Passage


def with_collected_sets(passage: Passage) -> Passage:
    """The passage with the size of `collect_set` for each COUNT(DISTINCT ...).

    A row where one of several values is NULL does not count, as in COUNT.
    """
    tokens = passage.tokens
    pieces: list[Passage | str] = []
    done = 0
    for index, token in enumerate(tokens[:-2]):
        if not (token.is_word("COUNT") and is_call(tokens, index) and tokens[index + 2].is_word("DISTINCT")):
            continue
        end, (first, *others) = call_arguments(passage, index)
        if len(first.tokens) == 1 or first.tokens[-1].is_symbol("*"):
            continue  # Spark says what is wrong
        values = [first.part(first.tokens[0].end, len(first.text)), *others]
        filter_end = _end_of_filter(passage, end)
        pieces += [passage.part(done, token.start)] if token.start > done else []
        pieces += ["CAST(size(collect_set(", *_one(values), ")"]
        pieces += [" ", passage.part(end, filter_end)] if filter_end > end else []
        pieces += [") AS BIGINT)"]
        done = filter_end
    if not pieces:
        return passage
    if done < len(passage.text):
        pieces.append(passage.part(done, len(passage.text)))
    return passage.rebuilt(pieces)


def _one(values: list[Passage]) -> list[Passage | str]:
    """One value for all; NULL if one of them is."""
    if len(values) == 1:
        return [values[0]]
    conditions: list[Passage | str] = []
    for value in values:
        conditions += [" AND " if conditions else "CASE WHEN ", "(", value, ") IS NOT NULL"]
    struct: list[Passage | str] = []
    for value in values:
        struct += [", " if struct else " THEN struct(", value]
    return [*conditions, *struct, ") END"]


def _end_of_filter(passage: Passage, end: int) -> int:
    """The offset behind `FILTER (WHERE ...)` if the call that ends at `end` has one, else `end`."""
    for index, token in enumerate(passage.tokens[:-1]):
        if token.start >= end:
            is_filter = token.is_word("FILTER") and passage.tokens[index + 1].is_symbol("(")
            return call_arguments(passage, index)[0] if is_filter else end
    return end
