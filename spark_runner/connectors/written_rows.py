"""Writes rows by a function in the tasks of Spark, which counts them and returns those that are rejected."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sql

from spark_runner.connectors.arrow_tasks import bounded_batches, error_of_task, in_tasks
from spark_runner.connectors.base import Written

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

    Writes = Callable[[Iterator[RecordBatch]], Iterator[tuple[int, Sequence["Rejected"]]]]

Rejected = tuple[str, str]
"""The reason, and the row or the record that the target rejects."""

_MAX_BYTES = 8 * 1024 * 1024  # of rows that a task holds at once


def written_by(
    frame: DataFrame,
    task: "Writes",
    options: Mapping[str, Any],
    *,
    column: str = "row",
    max_bytes: int = _MAX_BYTES,
) -> Written:
    """Write the rows of a frame once; `task` yields the number of rows written and those rejected.

    `column` of `Written.rejected` has the rejected rows. Raises the errors of `task`.
    """

    def results(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        # Not before the packages of the job are on the path of the executor.
        import pyarrow as pa  # noqa: PLC0415 - see above

        schema = pa.schema([("rows", pa.int64()), ("reason", pa.string()), (column, pa.string())])
        for rows, rejected in task(batches):
            found = {
                "rows": [rows, *[0] * len(rejected)],
                "reason": [None, *(reason for reason, _ in rejected)],
                column: [None, *(row for _, row in rejected)],
            }
            yield pa.RecordBatch.from_pydict(found, schema)

    result = f"rows BIGINT, reason STRING, {column} STRING"
    observation = Observation()
    counted = in_tasks(frame, results, result, tuple(map(str, options.values()))).observe(
        observation,
        sql.coalesce(sql.sum("rows"), sql.lit(0)).alias("rows"),
        sql.count("reason").alias("rejected"),
    )
    try:
        # Kept, for a further look at the result would write the rows again.
        with bounded_batches(frame.sparkSession, max_bytes):
            kept = counted.localCheckpoint()
    except PySparkException as error:
        raise error_of_task(error) from error
    found = observation.get
    rejected = kept.where("reason IS NOT NULL").select("reason", column) if found["rejected"] else None
    return Written(int(found["rows"]), rejected=rejected)
