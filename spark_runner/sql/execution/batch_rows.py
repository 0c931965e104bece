"""The rows of a table as one micro-batch of a streaming query reads them: the same files, or offsets.

A name in the plan of the query marks the rows of the table. Spark puts those of the micro-batch below it.
"""

from collections.abc import Collection
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.java_classes import java_class
from spark_runner.sql.execution.row_by_row import analyzed, nodes

MARK = "__orchestrator_judged_"
_QUERY_ID = "sql.streaming.queryId"  # a property that Spark gives the thread of each streaming query
_CHECK = "spark.sql.streaming.unsupportedOperationCheck"


def marks_in(frame: DataFrame) -> list[str]:
    """The marks in the plan of a frame; one that it reads twice is there twice."""
    return [name for node in nodes(analyzed(frame)) if (name := _mark(node))]


def rows_of_batch(
    session: SparkSession, batch: DataFrame, marks: Collection[str]
) -> dict[str, list[DataFrame]]:
    """The rows of a micro-batch by their mark, one frame for each place at which its query reads them.

    The call is in the thread of the query, which another session than `session` may have started. The frames
    can be counted; `bounded` makes them writable. Raises ConnectorError for a mark that the plan does not
    have.
    """
    java: Any = session._jsparkSession  # noqa: SLF001 - PySpark has no public access to the plan of a batch
    number = java_class(session, "java.util.UUID").fromString(
        session.sparkContext.getLocalProperty(_QUERY_ID)
    )
    query = java.sharedState().activeStreamingQueries().get(number)  # those of all sessions
    found = dict[str, list[DataFrame]]()
    own: Any = batch.sparkSession
    own.conf.set(_CHECK, "false")  # else Spark refuses to run a part of a streaming plan
    make = java_class(session, "org.apache.spark.sql.classic.Dataset").ofRows
    for node in nodes(query.lastExecution().logical()):
        if (name := _mark(node)) in marks:
            frame = DataFrame(make(own._jsparkSession, node.child()), own)  # noqa: SLF001 - likewise
            found.setdefault(name, []).append(frame)
    if missing := set(marks) - found.keys():
        raise ConnectorError(f"the plan of the micro-batch does not read {', '.join(sorted(missing))}")
    return found


def bounded(frame: DataFrame) -> DataFrame:
    """The same rows of a micro-batch, which Spark no longer takes for a stream."""
    java: Any = frame._jdf  # noqa: SLF001 - PySpark has no public way
    own: Any = frame.sparkSession._jsparkSession  # noqa: SLF001 - likewise
    rows = own.internalCreateDataFrame(java.queryExecution().toRdd(), java.schema(), False)
    return DataFrame(rows, frame.sparkSession)


def _mark(node: Any) -> str:
    name = str(node.alias()) if node.nodeName() == "SubqueryAlias" else ""
    return name if name.startswith(MARK) else ""
