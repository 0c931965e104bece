"""Leads Spark's errors back to the line of the script that caused them."""

import re
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import PySparkException, QueryContext, QueryContextType

from spark_runner.sql.errors import SqlError
from spark_runner.sql.source import Passage

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""What PySpark raises when Spark refuses or fails."""

_LINE_AND_COLUMN = (
    re.compile(r"\(line (\d+), pos (\d+)\)"),  # ParseException
    re.compile(r"; line (\d+) pos (\d+)"),  # AnalysisException without a query context
)
# Wrappers whose message repeats what their cause says better.
_WRAPPERS = ("Job aborted", "Task failed", "[TASK_WRITE_FAILED]", "[FAILED_EXECUTE_UDF]")


def reason(error: Exception) -> str:
    """What Spark says, without logical plan, query dump and Java stack."""
    if isinstance(error, Py4JJavaError):
        return _java_reason(error)
    if isinstance(error, PySparkException):
        return (error.getMessage() or str(error)).strip()
    return str(error)


def condition(error: Exception) -> str:
    """Spark's name for the error, like PATH_NOT_FOUND; empty if it has none."""
    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""


def located(error: Exception, query: Passage, views: Mapping[str, Passage], *, skip: int = 0) -> SqlError:
    """The error at its place in `query`, or in the view of the script that it happened in.

    `skip` is the length of what was put before the query's text when Spark got it. Where Spark names no
    place, the error points at the start of the query.
    """
    passage, offset = place(error, query, views, skip=skip) or (query, 0)
    return passage.error(reason(error), offset)


def place(
    error: Exception, query: Passage, views: Mapping[str, Passage], *, skip: int = 0
) -> tuple[Passage, int] | None:
    """The text and the offset in it that Spark names, if it names one."""
    for context in _contexts(error):
        if context.objectType() == "VIEW":
            view = views.get(context.objectName().lower())
            if view:
                return view, context.startIndex()
        elif context.startIndex() >= skip:
            return query, context.startIndex() - skip
    text = str(error) if isinstance(error, PySparkException) else ""
    for pattern in _LINE_AND_COLUMN:
        match = pattern.search(text)
        if match:
            before = query.text.split("\n")[: int(match[1]) - 1]
            in_line = int(match[2]) - (0 if before else skip)
            return query, max(0, sum(len(line) + 1 for line in before) + in_line)
    return None


def _contexts(error: Exception) -> list[QueryContext]:
    if not isinstance(error, PySparkException):
        return []
    try:
        contexts = list(error.getQueryContext())
    except AttributeError:  # errors raised in Python carry none
        return []
    return [context for context in contexts if context.contextType() == QueryContextType.SQL]


def _java_reason(error: Py4JJavaError) -> str:
    messages: list[str] = []
    cause = error.java_exception
    while cause is not None:
        message = (cause.getMessage() or cause.getClass().getSimpleName()).strip()
        cause = cause.getCause()
        if cause is not None and message.startswith(_WRAPPERS):
            continue
        first = message if not messages else message.split("\n", 1)[0]
        if not any(first in earlier for earlier in messages):
            messages.append(first)
    return ": ".join(message.split("\n\tat ", 1)[0] for message in messages)
