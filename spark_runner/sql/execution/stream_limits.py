"""The limit of the micro-batches of a stream in Spark, which a start of its query fixes."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from spark_runner.sql.batch_limits.tuner import LimitTuner
from spark_runner.sql.execution.row_by_row import analyzed, nodes


class LimitedRows(Protocol):
    """The rows of a stream, read with another limit."""

    def __call__(self, limit: int, *, has_begun: bool) -> DataFrame:
        """A frame of the same rows; `has_begun`: the checkpoint of the query has a micro-batch."""


RowsAgain = Callable[[DataFrame], tuple[int, LimitedRows] | None]
"""Gives, for the frame of a query, the limit of its micro-batches, and its rows with another one.

None if it reads no stream whose limit can change, or more than one stream.
"""


@dataclass(frozen=True)
class ChangingLimit:
    """How the limit of one query changes; `keep` stores it for a further attempt."""

    tuner: LimitTuner
    rows: Callable[[int], DataFrame]
    keep: Callable[[int], None]


def limit_of(frame: DataFrame, names: Collection[str]) -> int | None:
    """The limit of the one stream that a frame reads, by the names of such options of Spark."""
    streams = [each for each in nodes(analyzed(frame)) if each.nodeName().startswith("StreamingRelation")]
    if len(streams) != 1 or streams[0].nodeName() != "StreamingRelationV2":
        return None
    options = streams[0].extraOptions()
    found = [options.get(name) for name in names if options.containsKey(name)]
    return int(found[0]) if found else None


def cloned(session: SparkSession) -> SparkSession:
    """A session with the settings, views and functions that this one has now."""
    # PySpark has no public way to it; Spark makes the session of each query like this.
    return SparkSession(session.sparkContext, session._jsparkSession.cloneSession())  # noqa: SLF001 - as above
