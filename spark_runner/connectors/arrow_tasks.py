"""Runs a Python function in the tasks of Spark, whose errors mask secrets and become those of the driver.

The function and what it refers to travel as one serialized object: no option of a table is in a plan or in
Spark's UI.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from spark_runner.connectors.python_source import KINDS, TaskError, masked
from spark_runner.connectors.sql_errors import failure_that_passes
from spark_runner.protocol.redacted import spellings_within

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

    Task = Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]

_BYTES_OF_BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"
_OF_A_TASK = re.compile(rf"{TaskError.__name__}: (?P<type>\w+): (?P<words>.*)")


def in_tasks(frame: DataFrame, task: "Task", result: str, texts: tuple[str, ...] = ()) -> DataFrame:
    """The batches that `task` makes of those of each partition, with the columns of `result` (DDL).

    Known secrets that one of `texts` holds are masked in errors of the task.
    """
    secrets = tuple(spellings_within(texts))

    def guarded(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        try:
            yield from task(batches)
        except Exception as error:  # noqa: BLE001 - any error has a text
            raise masked(error, secrets) from None

    return map_batches(frame, guarded, result)


@contextlib.contextmanager
def bounded_batches(session: SparkSession, size: int) -> Iterator[None]:
    """Let a task hold about so many bytes of rows at once, in queries that run meanwhile."""
    before = session.conf.get(_BYTES_OF_BATCH, None)
    session.conf.set(_BYTES_OF_BATCH, str(size))
    try:
        yield
    finally:
        session.conf.unset(_BYTES_OF_BATCH) if before is None else session.conf.set(_BYTES_OF_BATCH, before)


def map_batches(
    frame: DataFrame, function: Callable[[Iterator[Any]], Iterator[Any]], schema: str
) -> DataFrame:
    """The record batches that a function makes from those of each partition, with the columns of `schema`.

    `DataFrame.mapInArrow` is the same, and wants pandas, which neither driver nor executors need for it.
    """
    made: Any = UserDefinedFunction(function, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    cells = made(*[frame[name] for name in frame.columns])
    mapped = frame._jdf.mapInArrow(cells._jc, False, None)  # noqa: SLF001 - no public way without pandas
    return DataFrame(mapped, frame.sparkSession)


def error_of_task(error: Exception) -> Exception:
    """The error of a connector in a task, as the driver reports it; the given one if it came from elsewhere.

    It may also be one of Java, of a database that does not answer.
    """
    if isinstance(error, PySparkException | Py4JJavaError) and not isinstance(error, AnalysisException):
        if found := _OF_A_TASK.search(str(error)):
            kind = {each.__name__: each for each in KINDS}.get(found["type"])
            return error if kind is None else kind(found["words"])
        with contextlib.suppress(Py4JError):  # the JVM has ended meanwhile
            return failure_that_passes(error) or error
    return error
