"""Rows as values of Redis."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.redis.commands import commands
from spark_runner.connectors.redis.round_trips import round_trips
from spark_runner.connectors.written_rows import Rejected, written_by

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types


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
        parts = commands(frame, options)
        if options["connections"]:  # a task has one connection to each server
            parts = parts.coalesce(options["connections"])
        return written_by(parts, Writes(dict(options)), options)

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
            servers.close()


class Writes:
    """Writes the commands of one partition, in a task of Spark."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options

    def __call__(self, batches: "Iterator[RecordBatch]") -> Iterator[tuple[int, list[Rejected]]]:
        """The number of rows written, and the rejected rows."""
        # Not before the packages of the job are on the path of the executor.
        from spark_runner.connectors.redis.pipeline import Pipeline  # noqa: PLC0415 - see above

        pipeline, size = Pipeline(self.options), self.options["batch_size"]
        try:
            for batch in batches:
                rejected = list[Rejected]()
                keys, made, replies = [batch.column(index).to_pylist() for index in range(3)]
                rows = batch.column(3)
                for part in round_trips([len(each or b"") for each in made], size):
                    found = pipeline.write(keys[part], made[part], replies[part])
                    rejected += [(why, rows[part.start + index].as_py()) for index, why in found.items()]
                yield batch.num_rows - len(rejected), rejected
        finally:
            pipeline.close()
