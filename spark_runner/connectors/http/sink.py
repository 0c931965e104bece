"""Rows as requests."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.http.client import Client
from spark_runner.connectors.http.requests import requests
from spark_runner.connectors.http.sender import Row, Sender
from spark_runner.connectors.written_rows import Rejected, written_by
from spark_runner.protocol.redacted import spellings_within

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types


class HttpSink:
    """One request for each row, or batch of rows."""

    def __init__(self) -> None:
        self._done = Counter[tuple[str, ...]]()  # INSERTs of a run into one URL: each has keys of its own

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Leave what earlier attempts sent: the same rows come again with the same keys."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Send all rows; those that the server refuses are returned. A failure may leave some sent.

        Raises ConnectorError, and Unreachable if the server does not answer.
        """
        session = frame.sparkSession
        self.probe(session, options, frame.schema)
        tasks = options["connections"] or session.sparkContext.defaultParallelism
        task = Sends(dict(options), tasks, tuple(spellings_within(map(str, options.values()))))
        place = (request.writer.run_key, options["method"], options["url"])
        # A micro-batch has a run key of its own, also when it is repeated.
        insert = self._done[place] if request.batch is None else 0
        written = written_by(requests(frame, options, request, tasks, insert), task, options)
        self._done[place] += 1
        return written

    def probe(
        self,
        session: SparkSession,  # noqa: ARG002 - of ProbedSink
        options: Mapping[str, Any],
        schema: StructType,  # noqa: ARG002 - of ProbedSink
    ) -> None:
        """Raise ConnectorError if the server cannot be reached, or is not trusted; sends no request."""
        with closing(Client(options)) as client:
            client.connect()


class Sends:
    """Sends the requests of one partition, in a task of Spark."""

    def __init__(self, options: Mapping[str, Any], tasks: int, secrets: tuple[str, ...]) -> None:
        self.options, self.tasks, self.secrets = options, tasks, secrets

    def __call__(self, batches: "Iterator[RecordBatch]") -> Iterator[tuple[int, list[Rejected]]]:
        """The number of rows sent, and the refused rows."""
        part = TaskContext.get()
        turn = part.partitionId() + 1 if part else 0
        with closing(Client(self.options, self.tasks, self.secrets, turn)) as client:
            sender = Sender(client, self.options)
            for batch in batches:
                columns = [batch.column(index).to_pylist() for index in range(4)]
                if not self.options["body"]:
                    columns[1] = columns[2]
                refused = sender.write(map(Row, *columns))
                yield batch.num_rows - len(refused), refused
