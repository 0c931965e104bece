"""The errors of a program that are permanent, and those that another attempt may avoid."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException, SparkRuntimeException

from spark_runner.connectors.errors import ConnectorError
from spark_runner.driver.outcome import of_error
from spark_runner.driver.program import JvmError
from spark_runner.sql.text.errors import SqlError


def raised(program: Callable[[], object]) -> BaseException:
    try:
        program()
    except BaseException as error:  # noqa: BLE001 - of whatever kind
        return error
    raise AssertionError


def sql_error(cause: Exception | None) -> SqlError:
    error = SqlError("wrong", file="s.sql", line=1, column=1, source_line="x")
    error.__cause__ = cause
    return error


def of_java(name: str, words: str = "words") -> JvmError:
    return JvmError(name, words, "")


def away() -> AnalysisException:
    """The error of Spark when its metastore does not answer."""
    error = AnalysisException("cannot reach the metastore")
    error._cause = ConnectionError("refused")  # type: ignore[attr-defined]  # noqa: SLF001 - as PySpark's own has it
    return error


NEVER = [
    raised(lambda: compile("if True print(1)", "job.py", "exec")),
    raised(lambda: __import__("no_such_module_anywhere")),
    raised(Path("/no/such/file").read_text),
    NameError("prnt"),
    AnalysisException("no column"),
    ParseException("no SQL"),
    sql_error(None),
    sql_error(AnalysisException("no column")),
    sql_error(ConnectorError("columns do not fit")),
    of_java("ClassNotFoundException"),
    of_java("org.apache.spark.sql.catalyst.ExtendedAnalysisException"),
    of_java("org.apache.spark.sql.catalyst.parser.ParseException"),
    of_java("org.apache.hadoop.mapred.InvalidInputException"),
    of_java("java.io.FileNotFoundException"),
    of_java("java.io.FileNotFoundException", "/data/x.csv (No such file or directory)"),
    of_java("java.io.FileNotFoundException", "File does not exist: hdfs://name/x (1)"),
]
PERHAPS = [
    ValueError("no rows today"),
    KeyError("x"),
    UnboundLocalError("rows"),
    PermissionError("closed"),
    SparkRuntimeException("divided by zero"),
    sql_error(SparkRuntimeException("divided by zero")),
    away(),
    sql_error(away()),
    of_java("java.lang.IllegalStateException"),
    of_java("java.io.FileNotFoundException", "/data/x.parquet (Too many open files)"),
    of_java("java.io.FileNotFoundException", "/data/x (1).csv (Stale file handle)"),
    of_java("org.example.FileNotFoundException"),
    RuntimeError("java.io.FileNotFoundException: said by a user"),
]


@pytest.mark.parametrize("error", NEVER, ids=repr)
def test_an_error_that_no_further_attempt_can_change_is_one_of_the_definition(error: BaseException) -> None:
    outcome = of_error(error)
    assert (outcome["state"], outcome["error"]["class"]) == ("failed", "definition")


@pytest.mark.parametrize("error", PERHAPS, ids=repr)
def test_every_other_error_of_a_program_is_one_of_its_user(error: BaseException) -> None:
    assert of_error(error)["error"]["class"] == "user"


def test_lack_of_memory_and_accidents_of_a_cluster_take_precedence() -> None:
    for words, kind in (
        ("ExecutorLostFailure (executor 1)", "infrastructure"),
        ("java.lang.OutOfMemoryError", "memory"),
    ):
        assert of_error(AnalysisException(words))["error"]["class"] == kind
