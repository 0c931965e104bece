"""Gives the session of a script its functions: those that it declares, and those of the platform."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from spark_runner.sql.execution.diagnosis import SPARK_ERRORS, reason
from spark_runner.sql.execution.function_types import named_type
from spark_runner.sql.execution.functions import (
    FunctionError,
    NoType,
    load_of_job,
    load_of_platform,
    register,
)
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource


def declare_function(
    session: SparkSession,
    plan: Mapping[str, Any],
    step: Mapping[str, Any],
    passage: Callable[[Sequence[Sequence[int]]], Passage],
) -> None:
    """Give a session the function of a step; `passage` reads a text of the plan.

    Raises FunctionError, and SqlError at a wrong type.
    """
    returns = _type(passage(step["returns"])) if "returns" in step else None
    found = load_of_job(step["module"], step["attribute"], plan.get("python_files") or ())
    try:
        register(session, step["name"], found, returns)
    except NoType as error:
        raise FunctionError(f"{error}; add RETURNS type") from error


def register_offered(session: SparkSession, plan: Mapping[str, Any], source: ScriptSource) -> None:
    """Give a session the functions of the platform that the script calls; the worker names them.

    Raises SqlError at the begin of the script.
    """
    for name, target in (plan.get("functions") or {}).items():
        try:
            register(session, name, load_of_platform(target), None)
        except (FunctionError, *SPARK_ERRORS) as error:
            words = str(error) if isinstance(error, FunctionError) else reason(error)
            raise source.error(f"function '{name}' of the platform: {words}", 0) from error


def _type(kind: Passage) -> DataType:
    """The type that the script names for the result of a function."""
    try:
        return named_type(kind.text)
    except (TypeError, *SPARK_ERRORS) as error:
        raise kind.error(reason(error)) from error
