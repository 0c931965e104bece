"""Rows as documents of Elasticsearch."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.elasticsearch.documents import lines
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.pushed_rows import delivered, pushed_by, rows_of, settings_of_parts
from spark_runner.connectors.written_rows import Rejected
from spark_runner.protocol.redacted import spellings_within
from spark_runner.push.batch import DeadLetter
from spark_runner.push.task import Portion, PushTask

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

    from spark_runner.connectors.elasticsearch.part import Lines

_THREADS = 2  # of a task whose rows have no order


class ElasticsearchSink:
    """One action of a bulk request for each row."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Leave what earlier attempts wrote: rows with a key replace it."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Write all rows; those that the server rejects are returned. A failure may leave some written.

        Raises ConnectorError, and Unreachable if the servers do not answer.
        """
        from spark_runner.connectors.elasticsearch.client import Client, pattern_of  # noqa: PLC0415 - see Writes
        from spark_runner.connectors.elasticsearch.fields import create_index  # noqa: PLC0415 - likewise
        from spark_runner.connectors.elasticsearch.target import check_target  # noqa: PLC0415 - likewise

        key = request.primary_key
        wants_key = [name for name in ("delete_column", "version_column") if options[name]]
        wants_key += [f"action '{options['action']}'"] if options["action"] in {"update", "delete"} else []
        if wants_key and not key:
            raise ConnectorError(f"{wants_key[0]} needs a PRIMARY KEY of the table, the id of its documents")
        found = lines(frame, options, key)
        with Client(options) as client:
            if not check_target(client, options):
                create_index(client, options, frame.schema)
        secrets = tuple(spellings_within(map(str, options.values())))
        keyed = bool(key) and not options["version_column"]  # else their order does not matter
        longest = options["connect_timeout"] + options["request_timeout"]
        settings = settings_of_parts(options, longest, is_ordered=keyed, threads=1 if keyed else _THREADS)
        # The line of a delete is no row that a replay could write again.
        column = "record" if options["delete_column"] or options["action"] == "delete" else "row"
        written = pushed_by(
            found,
            lambda task: Writes(dict(options), secrets, task, keyed=keyed),
            settings,
            options,
            request,
            column=column,
            max_bytes=options["max_batch_bytes"],
        )
        if options["refresh"]:
            with Client(options) as client:
                client.check(client.insist("POST", f"/{pattern_of(options['index'])}/_refresh"))
        return written

    def probe(
        self,
        session: SparkSession,  # noqa: ARG002 - of ProbedSink
        options: Mapping[str, Any],
        schema: StructType,  # noqa: ARG002 - of ProbedSink
    ) -> None:
        """Raise ConnectorError if no server answers, or refuses the user, or has no such index."""
        from spark_runner.connectors.elasticsearch.client import Client  # noqa: PLC0415 - see Writes
        from spark_runner.connectors.elasticsearch.target import check_target  # noqa: PLC0415 - likewise

        with Client(options) as client:
            check_target(client, options)


class Writes:
    """Writes the lines of one partition, in a task of Spark."""

    def __init__(
        self, options: Mapping[str, Any], secrets: tuple[str, ...], task: PushTask, *, keyed: bool
    ) -> None:
        self.options, self.secrets, self.task, self.keyed = options, secrets, task, keyed

    def __call__(self, batches: "Iterator[RecordBatch]") -> Iterator[tuple[int, list[Rejected]]]:
        """The number of rows written, and the rejected rows."""
        # Not before the packages of the job are on the path of the executor.
        from spark_runner.connectors.elasticsearch.bulk import Bulk  # noqa: PLC0415 - see above

        faults = list[Rejected]()  # of rows that are not sent

        def portion(batch: "RecordBatch") -> Portion:
            faults.extend(each.partition("\n")[::2] for each in batch.column(1).drop_null().to_pylist())
            return Portion(bulk.records(lines_of(batch.column(0).drop_null())))

        with closing(Bulk(self.options, self.secrets, keyed=self.keyed)) as bulk:
            for count, rejected in delivered(self.task, bulk.deliver, map(portion, batches), _rejected):
                found, faults[:] = faults[:], []
                yield count, found + rejected


def lines_of(array: "Array") -> "Lines":
    """The values of an array of BINARY without NULL, not copied."""
    from spark_runner.connectors.elasticsearch.part import Lines  # noqa: PLC0415 - see Writes

    if not len(array):
        return Lines.of([])
    _, offsets, data = array.buffers()
    numbers = memoryview(offsets).cast("q" if array.type == "large_binary" else "i")
    return Lines(memoryview(data), numbers[array.offset : array.offset + len(array) + 1])


def _rejected(letter: DeadLetter) -> list[Rejected]:
    return [(reason, _row(row)) for reason, row in rows_of(letter)]


def _row(row: bytes) -> str:
    """The document of a row, or the line of its delete."""
    head, _, rest = row.decode("utf-8", "replace").rstrip("\n").partition("\n")
    if rest and head.startswith('{"update"'):
        rest = rest.removeprefix('{"doc":').removesuffix(',"doc_as_upsert":true}')
    return rest or head
