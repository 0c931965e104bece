"""The parts of CREATE TABLE in a plan that are more than stored columns."""

from typing import Any

from spark_runner.sql.compiler.tables import metadata_field
from spark_runner.sql.compiler.watermarks import check_watermark
from spark_runner.sql.grammar.columns import Columns
from spark_runner.sql.grammar.query import QUERY_WORDS
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.tokens import TokenKind

_OPERANDS = frozenset({TokenKind.WORD, TokenKind.QUOTED, TokenKind.STRING, TokenKind.NUMBER})


def declared(columns: Columns, values: dict[str, int]) -> dict[str, Any]:
    """Computed and metadata columns, expectations and the primary key; empty for stored columns alone.

    `values` are the pasted texts of the plan. Raises SqlError at an unsupported expression or watermark.
    """
    for column in columns.computed:
        _refuse_subquery(column.expression)
    check_watermark(columns)
    for expectation in columns.expectations:
        _refuse_subquery(expectation.condition)
    found: dict[str, Any] = {
        "computed": [
            {
                "name": column.name,
                "expression": column.expression.to_json(values),
                "type": column.type.to_json(values) if column.type else None,
            }
            for column in columns.computed
        ],
        "metadata": [
            {"name": column.name, "field": metadata_field(column.key), "type": column.type.to_json(values)}
            for column in columns.metadata
        ],
        "expectations": [
            {
                "name": each.name,
                "condition": each.condition.to_json(values),
                "action": each.action.value,
            }
            for each in columns.expectations
        ],
        "primary_key": list(columns.primary_key),
    }
    found = {name: value for name, value in found.items() if value}
    return found and {**found, "order": list(columns.names)}


def _refuse_subquery(expression: Passage) -> None:
    tokens = expression.tokens
    for token in tokens:
        if token.is_word("USING"):  # SELECT TRANSFORM, MAP and REDUCE start a program with it
            raise expression.error("a declaration cannot start a program", token.start)
    for opening, token, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
        # A column may have the name VALUES; then no operand follows it.
        is_query = token.is_word("SELECT", "WITH") or behind.kind in _OPERANDS or behind.is_symbol("(")
        if opening.is_symbol("(") and token.is_word(*QUERY_WORDS) and is_query:
            message = "a declaration cannot hold a query; use a view"
            raise expression.error(message, token.start)
