"""Runs the statements that show or check data, and write nothing."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BooleanType, NullType

from spark_runner.connectors.base import Writer, WriteRequest
from spark_runner.connectors.print.sink import PrintSink
from spark_runner.protocol.errors import SparkRunnerError
from spark_runner.sql.execution import catalogs
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.script_session import ScriptSession
from spark_runner.sql.execution.unfit_records import unfit_record

SHOWN_ROWS = 20  # of a query, as many as `print` shows by default


class ConditionNotMet(SparkRunnerError):
    """The data do not meet the condition of an ASSERT; another attempt may find other data."""


def show(script: ScriptSession, step: Mapping[str, Any]) -> None:
    """Print the first rows of a query on standard output."""
    script.report(f"query of line {step['line']}")
    frame = script.rows(step)
    try:
        PrintSink().write(frame, {"limit": SHOWN_ROWS}, WriteRequest("append", Writer("")))
    except SPARK_ERRORS as error:
        if unfit := unfit_record(script, error, step):
            raise unfit from error
        raise script.sent.located(error, script.passage(step["query"])) from error


def check(script: ScriptSession, step: Mapping[str, Any]) -> None:
    """Raise SqlError if the condition of an ASSERT is false or NULL."""
    script.report(f"ASSERT of line {step['line']}")
    condition = script.passage(step["condition"])
    frame = condition_frame(script, step)
    try:
        rows = frame.limit(2).collect()
    except SPARK_ERRORS as error:
        if unfit := unfit_record(script, error, step):
            raise unfit from error
        raise script.sent.located(error, condition) from error
    if len(rows) != 1:
        raise condition.error("the condition of ASSERT must have one value, this one makes rows")
    if rows[0][0] is not True:
        result = "NULL" if rows[0][0] is None else "false"
        said = f"{step['message']} (the condition is {result})" if step["message"] else ""
        raise script.error(
            f"ASSERT failed: {said or f'{condition.text} is {result}'}", step
        ) from ConditionNotMet(result)


def condition_frame(script: ScriptSession, step: Mapping[str, Any]) -> DataFrame:
    """The condition of an ASSERT as a frame of one column; raises SqlError unless it is a BOOLEAN."""
    condition = script.passage(step["condition"])
    try:
        # An expression, not a query: it cannot add a FROM. The relation has one row and no columns.
        frame = script.session.range(1).select().select(sql.expr(script.sent.send(condition)))
        types = [field.dataType for field in frame.schema.fields]
    except SPARK_ERRORS as error:
        raise catalogs.located(script.session, script.sent, error, condition) from error
    denied = bool(script.plan.get("denied_catalogs"))
    catalogs.check_relations(script.session, frame, condition, denied=denied)
    if len(types) != 1 or not isinstance(types[0], BooleanType | NullType):
        found = ", ".join(kind.simpleString().upper() for kind in types) or "no value"
        raise condition.error(f"the condition of ASSERT must be a BOOLEAN, this is {found}")
    return frame


def explain(script: ScriptSession, step: Mapping[str, Any]) -> None:
    """Print the plan of a query on standard output; that of an INSERT has the columns of its table."""
    script.report(f"EXPLAIN of line {step['line']}")
    target = step["target"]
    frame = script.query(step, script.tables[target.lower()]) if target else script.rows(step)
    try:
        frame.explain(mode=step["mode"])
    except SPARK_ERRORS as error:
        raise script.sent.located(error, script.passage(step["query"])) from error
    sys.stdout.flush()


INSPECTIONS: Mapping[str, Callable[[ScriptSession, Mapping[str, Any]], None]] = {
    "query": show,
    "assert": check,
    "explain": explain,
}
"""By the kind of the step."""
