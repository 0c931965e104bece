"""Frames of streams and their stand-ins without rows, and what Spark says of a stream before it starts."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.java_classes import items, java_class
from spark_runner.connectors.session_settings import changed
from spark_runner.sql.execution.row_by_row import analyzed, nodes
from spark_runner.sql.grammar.statement_set import OUTSIDE_OF_SET


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
    session = frame.sparkSession
    checker = java_class(session, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker")
    mode = java_class(session, "org.apache.spark.sql.streaming.OutputMode").Append()
    analysed: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no public way to this check
    checker.checkForStreaming(analysed, mode)


_CSV_PUSHDOWN = "spark.sql.csv.filterPushdown.enabled"


@contextlib.contextmanager
def without_csv_pushdown(session: SparkSession, frame: DataFrame) -> Iterator[None]:
    """Keep a condition on no column, as `WHERE false`, from the decoder of CSV while a query is started.

    The query copies the settings of the session. Spark fails at such a condition if the query uses no
    column of the file: OrderedFilters looks for the first one.
    """
    state: Any = frame.sparkSession._jsparkSession.sessionState()  # noqa: SLF001 - PySpark has no public way to it
    plan = state.optimizer().execute(analyzed(frame))  # a stream has no optimized plan of its own
    is_needed = any(
        node.nodeName() == "Filter" and node.condition().references().isEmpty() for node in nodes(plan)
    )
    with changed(session, {_CSV_PUSHDOWN: "false"} if is_needed else {}):
        yield


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


def refused_in_set(frame: DataFrame) -> str:
    """Why an INSERT with these rows of a stream is no part of a statement set; empty if it may be.

    Spark's analysed plan names what computes rows from other rows of the stream; an operation that this
    version does not know may do so.
    """
    analysed: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no public way to the plan
    if not (found := _state_below(analysed)):
        return ""
    needs = "needs rows of earlier micro-batches, which no INSERT of a statement set has"
    return f"{found} {needs}; {OUTSIDE_OF_SET}"


def _state_below(plan: Any) -> str:
    if not plan.isStreaming():
        return ""
    name, children = str(plan.getClass().getSimpleName()), items(plan.children())
    if name == "Join":
        if all(child.isStreaming() for child in children):
            return "a join of two streams"
    elif name not in _WITHOUT_STATE:
        return f"'{plan.nodeName()}'"
    return next(filter(None, map(_state_below, children)), "")
