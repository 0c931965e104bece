"""Runs a Python function in the tasks of Spark, whose errors mask secrets and become those of the driver.

The function and what it refers to travel as one serialized object: no option of a table is in a plan or in
Spark's UI.
"""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_runner.connectors.arrow_map import map_batches
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.python_source import TaskError, masked
from spark_runner.protocol.redacted import spellings_within

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

    Task = Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]

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


def error_of_task(error: PySparkException) -> Exception:
    """The error that a task raised, as the driver reports it; the given one if it came from elsewhere."""
    found = _OF_A_TASK.search(str(error))
    if found is None:
        return error
    kinds: dict[str, type[ConnectorError]] = {each.__name__: each for each in (ConnectorError, Unreachable)}
    kind = kinds.get(found["type"])
    return error if kind is None else kind(found["words"])
