"""Runs the statements that show or check data, and write nothing."""

from collections.abc import Callable, Mapping
from typing import Any

from spark_runner.connectors.base import Writer
from spark_runner.connectors.registry import SINKS
from spark_runner.sql.execution.diagnosis import SPARK_ERRORS
from spark_runner.sql.execution.names import ScriptSession

SHOWN_ROWS = 20  # of a query, as many as `print` shows by default


def show(script: ScriptSession, step: Mapping[str, Any]) -> None:
    """Print the first rows of a query on standard output."""
    script.report(f"query of line {step['line']}")
    frame = script.rows(step)
    try:
        SINKS["print"].write(frame, {"limit": SHOWN_ROWS}, "append", Writer(""))
    except SPARK_ERRORS as error:
        raise script.sent.located(error, script.passage(step["query"])) from error


INSPECTIONS: Mapping[str, Callable[[ScriptSession, Mapping[str, Any]], None]] = {"query": show}
"""By the kind of the step."""
