"""Rows that one task serves until a client has fetched all of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.errors import ConnectorError, Unreachable
from spark_runner.connectors.pushed_rows import pushed_by
from spark_runner.connectors.rows import column, row_of
from spark_runner.connectors.written_rows import Rejected
from spark_runner.push.errors import PushError, SettingError
from spark_runner.push.poll.settings import SEND_S, PollSettings
from spark_runner.push.poll.task import PollTask
from spark_runner.push.settings import Order, PushSettings

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

_SORT = "__orchestrator_sort_"
_PORTION = 1000  # rows that are made bytes at once
# Only one task serves at any time: of an order, a further attempt waits for the end of the earlier one.
_SETTINGS = PushSettings(order=Order.STRICT, request_timeout=SEND_S)


class PollSink:
    """Serves the rows of each INSERT on their own."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Leave what earlier attempts served: all rows are served again, and old cursors are refused."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Serve all rows until a client has acknowledged them. A failure may leave some of them fetched.

        Raises ConnectorError, and Unreachable if no client acknowledges rows.
        """
        settings = _settings(options)
        if request.batch is not None:
            raise ConnectorError("connector 'poll' cannot write a stream; use mode 'batch'")
        rows = _ended(_in_order(frame, options["order_by"]).coalesce(1))
        return pushed_by(
            rows, lambda task: Serves(PollTask(settings, task.endpoint)), _SETTINGS, options, request
        )

    def probe(
        self,
        session: SparkSession,  # noqa: ARG002 - of ProbedSink
        options: Mapping[str, Any],
        schema: StructType,  # noqa: ARG002 - of ProbedSink
    ) -> None:
        """Raise ConnectorError if the token, the certificate or its key cannot be used; opens no port."""
        _settings(options)


def _in_order(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows as JSON texts; with names, in the order of these columns, in one partition."""
    sorting = {f"{_SORT}{place}": column(name) for place, name in enumerate(names)}
    rows = frame.select(row_of(frame).alias("row"), *(each.alias(name) for name, each in sorting.items()))
    if sorting:
        rows = rows.repartition(1).sortWithinPartitions(*sorting, "row")
    return rows.select("row")


def _ended(rows: DataFrame) -> DataFrame:
    """The rows of one partition, and NULL after them.

    To Python code, a query that fails looks like the end of its rows; clients must not take it for that.
    """
    # A partition without a preferred place, which each kind of union and `coalesce` leaves behind the others.
    last = rows.sparkSession.range(0, 1, 1, 1).select(sql.lit(None).cast("string").alias("row"))
    return rows.union(last).coalesce(1)


class Serves:
    """Serves the rows of the only partition, in a task of Spark."""

    def __init__(self, task: PollTask) -> None:
        self.task = task

    def __call__(self, batches: "Iterator[RecordBatch]") -> Iterator[tuple[int, list[Rejected]]]:
        """The number of rows, once a client has acknowledged all of them; the last row of all is NULL."""
        try:
            yield self.task.run(_portions(batches)), []
        except SettingError as error:
            raise ConnectorError(str(error)) from error
        except PushError as error:
            raise Unreachable(str(error)) from error


def _portions(batches: "Iterator[RecordBatch]") -> Iterator[list[bytes]]:
    has_ended = False
    for batch in batches:
        rows = batch.column("row")
        for start in range(0, len(rows), _PORTION):
            texts = rows.slice(start, _PORTION).to_pylist()
            has_ended = texts[-1] is None
            yield [text.encode() for text in (texts[:-1] if has_ended else texts)]
    if not has_ended:
        raise Unreachable("Spark has sent a part of the rows alone")


def _settings(options: Mapping[str, Any]) -> PollSettings:
    chain = f"{options['ssl_key']}\n{options['ssl_certificate']}" if options["ssl_certificate"] else ""
    try:
        found = PollSettings(
            options["token"],
            options["host"],
            options["port"],
            options["page_size"],
            options["page_bytes"],
            options["client_timeout"],
            chain,
            options["ssl_key_password"],
        )
        found.tls()
    except SettingError as error:
        raise ConnectorError(str(error)) from error
    return found
