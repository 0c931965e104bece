"""Rows as values of Redis."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.pushed_rows import delivered, pushed_by, rows_of, settings_of_parts
from spark_runner.connectors.redis.commands import commands
from spark_runner.connectors.written_rows import Rejected
from spark_runner.push.batch import DeadLetter
from spark_runner.push.task import Portion, PushTask

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
        request: WriteRequest,
    ) -> Written:
        """Write all rows; those that Redis rejects are returned. A failure may leave some written.

        Raises ConnectorError, and Unreachable if the server does not answer.
        """
        from spark_runner.connectors.redis.pipeline import longest_request  # noqa: PLC0415 - see Writes

        self.probe(frame.sparkSession, options, frame.schema)
        parts = commands(frame, options)
        if options["connections"]:  # a task has one connection to each server
            parts = parts.coalesce(options["connections"])
        settings = settings_of_parts(options, longest_request(options), is_ordered=True)
        return pushed_by(parts, lambda task: Writes(dict(options), task), settings, options, request)

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

    def __init__(self, options: Mapping[str, Any], task: PushTask) -> None:
        self.options, self.task = options, task

    def __call__(self, batches: "Iterator[RecordBatch]") -> Iterator[tuple[int, list[Rejected]]]:
        """The number of rows written, and the rejected rows."""
        # Not before the packages of the job are on the path of the executor.
        from spark_runner.connectors.redis.pipeline import Pipeline  # noqa: PLC0415 - see above

        unsent = list[Rejected]()

        def portion(batch: "RecordBatch") -> Portion:
            keys, made, replies = [batch.column(index).to_pylist() for index in range(3)]
            found, rejected = pipeline.records(keys, made, replies, batch.column(3))
            unsent.extend((why, batch.column(3)[number].as_py()) for number, why in rejected.items())
            return Portion(found)

        with closing(Pipeline(self.options)) as pipeline:
            for count, rejected in delivered(self.task, pipeline.deliver, map(portion, batches), _rejected):
                found, unsent[:] = unsent[:], []
                yield count, found + rejected


def _rejected(letter: DeadLetter) -> list[Rejected]:
    texts = letter.record.value.texts
    return [(why, texts[number].as_py()) for why, number in rows_of(letter)]
