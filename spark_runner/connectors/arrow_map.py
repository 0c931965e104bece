"""Lets Python code in the tasks of Spark take and give record batches of Arrow."""

from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType


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
