"""Rows as requests."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.delivered_rows import DeliveredRows
from spark_runner.connectors.http.bodies import Row
from spark_runner.connectors.http.client import Client
from spark_runner.connectors.http.requests import requests
from spark_runner.connectors.http.sender import Sender
from spark_runner.connectors.pushed_rows import delivered, order_of, pushed_by, settings_of, tasks_of
from spark_runner.connectors.written_rows import Rejected
from spark_runner.protocol.redacted import spellings_within
from spark_runner.push.task import Portion, PushTask

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

_PORTION = 500  # rows between positions


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
        order, tasks = order_of(options, request), tasks_of(options, session)
        longest = options["connect_timeout"] + options["timeout"]
        settings = settings_of(options, order, tasks, longest)
        place = (request.writer.run_key, options["method"], options["url"])
        # A micro-batch has a run key of its own, also when it is repeated.
        insert = self._done[place] if request.batch is None else 0
        secrets = tuple(spellings_within(map(str, options.values())))
        rows = requests(frame, options, request, order, tasks=tasks, insert=insert)
        # Rows without a key cannot be told apart, and a micro-batch is repeated as a whole.
        is_kept = bool(options["idempotency_header"]) and request.batch is None
        kept_as = f"{request.target}#{insert}" if is_kept else ""
        written = pushed_by(
            rows,
            lambda task: Sends(dict(options), secrets, task),
            settings,
            options,
            request,
            kept_as=kept_as,
        )
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

    def __init__(self, options: Mapping[str, Any], secrets: tuple[str, ...], task: PushTask) -> None:
        self.options, self.secrets, self.task = options, secrets, task

    def __call__(self, batches: "Iterator[RecordBatch]") -> Iterator[tuple[int, list[Rejected]]]:
        """The number of rows sent, and the refused rows."""
        refused = list[Rejected]()  # before they are sent
        with closing(Sender(self.options, self.secrets)) as sender:
            known = DeliveredRows(self.task.position)
            portions = self._portions(batches, sender, refused, known)
            for count, rejected in delivered(
                self.task,
                sender.deliver,
                portions,
                lambda letter: [(letter.reason, str(letter.record.value.row))],
            ):
                found, refused[:] = refused[:], []
                passed, known.passed = known.passed, 0
                yield count + passed, found + rejected

    def _portions(
        self,
        batches: "Iterator[RecordBatch]",
        sender: Sender,
        refused: list[Rejected],
        known: DeliveredRows,
    ) -> Iterator[Portion]:
        position, has_keys, is_clean = self.task.position, bool(self.options["idempotency_header"]), True
        # Batches that began at another row would have other keys. With `linger`, they are others anyway.
        completes_batches = self.options["batch_size"] > 1 and not self.options["linger"]
        for batch in batches:
            all_rows = list(self._rows(batch))
            for start in range(0, len(all_rows), _PORTION):
                rows = all_rows[start : start + _PORTION]
                passed = known.pass_over([f"{row.key} {row.row}" for row in rows]) if has_keys else 0
                if completes_batches and passed:
                    yield Portion(sender.records(rows[:passed], refused), position, is_delivered=True)
                else:
                    known.passed += passed
                del rows[:passed]
                records = sender.records(rows, refused)
                # A further attempt must meet a row again that cannot be sent: no quarantine has it yet.
                is_clean = is_clean and not refused
                position = known.position if has_keys and is_clean else position
                yield Portion(records, position)
        known.end()

    def _rows(self, batch: "RecordBatch") -> Iterator[Row]:
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        if not self.options["body"]:
            columns["body"] = columns["row"]
        return map(Row, *(columns[name] for name in Row._fields))
