"""Checks `WATERMARK FOR column AS expression`: how late rows of a stream may be."""

from typing import Any

from spark_runner.sql.grammar.columns import Columns, Watermark
from spark_runner.sql.grammar.intervals import interval_in
from spark_runner.sql.grammar.windows import PROCESSING_TIME
from spark_runner.sql.text.literals import name_value

_INTERVAL = 2  # the index of INTERVAL in `ts - INTERVAL '5' SECOND`


def check_watermark(columns: Columns) -> None:
    """Raise SqlError for an interval that Spark refuses in a stream; a batch uses none."""
    found = columns.watermark
    if found is None or not _has_interval(found):
        return
    interval = interval_in(found.expression, _INTERVAL)
    if interval is not None and interval.length < 0:
        at = found.expression.tokens[_INTERVAL].start
        message = "the interval of a watermark is negative; it says how late rows may be"
        raise found.expression.error(message, at)


def delay_of(columns: Columns) -> dict[str, Any]:
    """The part of a table in a plan: the column and its delay, in words of Spark; empty without any.

    Raises SqlError for an expression that Spark cannot use.
    """
    found = columns.watermark
    if found is None:
        return _of_processing_time(columns)
    tokens, text = found.expression.tokens, found.expression.text
    if _has_interval(found):
        delay = " ".join(text[tokens[_INTERVAL].start :].split())
    elif len(tokens) == 1 and _names_column(found):
        delay = "0 seconds"
    else:
        message = f"a watermark is {found.column} - INTERVAL '5' SECOND, or another interval"
        raise found.expression.error(message)
    return {"watermark": {"column": found.column, "delay": delay}}


def _of_processing_time(columns: Columns) -> dict[str, Any]:
    """The watermark that a column `AS PROCTIME()` is by itself: no row is late, so that windows of it end."""
    for each in columns.computed:
        if each.expression.text.strip() == PROCESSING_TIME:
            return {"watermark": {"column": each.name, "delay": "0 seconds"}}
    return {}


def _has_interval(watermark: Watermark) -> bool:
    """Whether the expression is `column - INTERVAL ...`."""
    tokens = watermark.expression.tokens
    is_difference = len(tokens) > _INTERVAL and tokens[1].is_symbol("-")
    return is_difference and tokens[_INTERVAL].is_word("INTERVAL") and _names_column(watermark)


def _names_column(watermark: Watermark) -> bool:
    first = watermark.expression.tokens[0]
    return name_value(first.text).lower() == watermark.column.lower()
