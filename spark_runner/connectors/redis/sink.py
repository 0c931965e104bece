"""Rows as values of Redis."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.arrow_tasks import error_of_task, in_tasks
from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.redis.commands import commands

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

_RESULT = "rows BIGINT, reason STRING, record STRING"


class RedisSink:
    """One command, or two with a time to live, for each row."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Leave what earlier attempts wrote: the same rows replace it, but in lists and streams."""

    def write(
        self,
        frame: DataFrame,
        options: Mapping[str, Any],
        request: WriteRequest,  # noqa: ARG002 - of Sink
    ) -> Written:
        """Write all rows; those that Redis rejects are returned. A failure may leave some written.

        Raises ConnectorError, and Unreachable if the server does not answer.
        """
        self.probe(frame.sparkSession, options, frame.schema)
        observation = Observation()
        parts = commands(frame, options)
        if options["connections"]:  # a task has one connection to each server
            parts = parts.coalesce(options["connections"])
        done = in_tasks(parts, Writes(dict(options)), _RESULT, tuple(map(str, options.values())))
        counted = done.observe(
            observation,
            sql.coalesce(sql.sum("rows"), sql.lit(0)).alias("rows"),
            sql.count("reason").alias("rejected"),
        )
        try:
            # Kept, for a further look at the result would write the rows again.
            kept = counted.localCheckpoint()
        except PySparkException as error:
            raise error_of_task(error) from error
        found = observation.get
        rejected = kept.where("reason IS NOT NULL").select("reason", "record") if found["rejected"] else None
        return Written(int(found["rows"]), rejected=rejected)

    def probe(
        self,
        session: SparkSession,  # noqa: ARG002 - of ProbedSink
        options: Mapping[str, Any],
        schema: StructType,  # noqa: ARG002 - of ProbedSink
    ) -> None:
        """Raise ConnectorError if no server answers, or it refuses the credentials."""
        from spark_runner.connectors.redis.client import Servers, clear_errors  # noqa: PLC0415 - see Writes

        servers = Servers(options)
        try:
            with clear_errors(options):
                for name in servers.names():
                    servers.client(name).ping()
        finally:
            servers.forget()


class Writes:
    """Writes the commands of one partition, in a task of Spark."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options

    def __call__(self, batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        """The number of rows written, and the rejected rows."""
        # Not before the packages of the job are on the path of the executor.
        import pyarrow as pa  # noqa: PLC0415 - see above

        from spark_runner.connectors.redis.pipeline import Pipeline, Rejected, round_trips  # noqa: PLC0415 - likewise

        pipeline, size = Pipeline(self.options), self.options["batch_size"]
        try:
            for batch in batches:
                rejected = list[Rejected]()
                keys, made = batch.column(0).to_pylist(), batch.column(1).to_pylist()
                for part in round_trips([len(each or b"") for each in made], size):
                    rejected += pipeline.write(keys[part], made[part])
                yield pa.RecordBatch.from_pydict(
                    {
                        "rows": [batch.num_rows - len(rejected), *[0] * len(rejected)],
                        "reason": [None, *(each.reason for each in rejected)],
                        "record": [None, *(each.record for each in rejected)],
                    },
                    pa.schema(
                        [
                            ("rows", pa.int64()),
                            ("reason", pa.string()),
                            ("record", pa.string()),
                        ]
                    ),
                )
        finally:
            pipeline.close()
