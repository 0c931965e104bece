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


# The nodes of analysed plans that compute each row of a stream from no other row of it.
_WITHOUT_STATE = frozenset(
    {
        *("Project", "Filter", "Generate", "SubqueryAlias", "View", "EventTimeWatermark", "Union"),
        *("WithCTE", "CTERelationDef", "CTERelationRef", "UnresolvedHint", "ResolvedHint"),
        *("Repartition", "RepartitionByExpression", "RebalancePartitions"),
        *("StreamingRelation", "StreamingRelationV2"),
    }
)


def state_of(frame: DataFrame) -> str:
    """What of a streaming frame computes rows from other rows of the stream, in words of Spark; else empty.

    An operation that this version does not know may do so.
    """
    analysed: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no public way to the plan
    return _state_below(analysed)


def _state_below(plan: Any) -> str:
    if not plan.isStreaming():
        return ""
    name, children = str(plan.getClass().getSimpleName()), _children(plan)
    if name == "Join":
        if all(child.isStreaming() for child in children):
            return "a join of two streams"
    elif name not in _WITHOUT_STATE:
        return f"'{plan.nodeName()}'"
    return next(filter(None, map(_state_below, children)), "")


def _children(plan: Any) -> list[Any]:
    found = plan.children()
    return [found.apply(index) for index in range(found.size())]
