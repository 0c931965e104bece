"""Frames of streams and their stand-ins without rows, and what Spark says of a stream before it starts."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType


def empty_frame(session: SparkSession, schema: StructType) -> DataFrame:
    """A frame with these columns."""
    # Python would start a process for `createDataFrame`; and no position is lost with equal names.
    return session.range(0).select(*_nulls(schema))


def empty_stream(session: SparkSession, schema: StructType) -> DataFrame:
    """A frame with these columns, which Spark takes for a stream; no query starts it."""
    return session.readStream.format("rate").load().select(*_nulls(schema))


def with_watermark(step: Mapping[str, Any], frame: DataFrame) -> DataFrame:
    """The stream of a table with the watermark that the table declares."""
    watermark = step.get("watermark")
    return frame.withWatermark(watermark["column"], watermark["delay"]) if watermark else frame


def check_streamable(frame: DataFrame) -> None:
    """Raise the error of Spark that the start of a query with this frame would have."""
    jvm: Any = frame.sparkSession._jvm  # noqa: SLF001 - PySpark has no public way to this check
    catalyst: Any = jvm.org.apache.spark.sql.catalyst
    analysed: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - likewise
    mode = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(analysed, mode)


def _nulls(schema: StructType) -> list[Column]:
    return [sql.lit(None).cast(each.dataType).alias(each.name) for each in schema.fields]
