"""Rows as documents of Elasticsearch."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.elasticsearch.documents import lines
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.written_rows import Rejected, written_by
from spark_runner.protocol.redacted import spellings_within

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

    from spark_runner.connectors.elasticsearch.bulk import Lines


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
        task = Writes(dict(options), tuple(spellings_within(map(str, options.values()))), keyed=bool(key))
        # The line of a delete is no row that a replay could write again.
        column = "record" if options["delete_column"] or options["action"] == "delete" else "row"
        size = options["max_batch_bytes"]
        written = written_by(found, task, options, column=column, max_bytes=size)
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

    def __init__(self, options: Mapping[str, Any], secrets: tuple[str, ...], *, keyed: bool) -> None:
        self.options, self.secrets, self.keyed = options, secrets, keyed

    def __call__(self, batches: "Iterator[RecordBatch]") -> Iterator[tuple[int, list[Rejected]]]:
        """The number of rows written, and the rejected rows."""
        # Not before the packages of the job are on the path of the executor.
        from spark_runner.connectors.elasticsearch.bulk import Bulk  # noqa: PLC0415 - see above
        from spark_runner.connectors.elasticsearch.client import Client  # noqa: PLC0415 - likewise

        with Client(self.options, self.secrets) as client:
            bulk = Bulk(client, self.options, keyed=self.keyed)
            for batch in batches:
                faults = [each.partition("\n")[::2] for each in batch.column(1).drop_null().to_pylist()]
                rows = lines_of(batch.column(0).drop_null())
                for part in rows.batches(self.options["max_batch_bytes"]):
                    faults += [(reason, _row(row)) for reason, row in bulk.write(part)]
                yield batch.num_rows - len(faults), faults


def lines_of(array: "Array") -> "Lines":
    """The values of an array of BINARY without NULL, not copied."""
    from spark_runner.connectors.elasticsearch.bulk import Lines  # noqa: PLC0415 - see Writes

    if not len(array):
        return Lines.of([])
    _, offsets, data = array.buffers()
    numbers = memoryview(offsets).cast("q" if array.type == "large_binary" else "i")
    return Lines(memoryview(data), numbers[array.offset : array.offset + len(array) + 1])


def _row(row: bytes) -> str:
    """The document of a row, or the line of its delete."""
    head, _, rest = row.decode("utf-8", "replace").rstrip("\n").partition("\n")
    if rest and head.startswith('{"update"'):
        rest = rest.removeprefix('{"doc":').removesuffix(',"doc_as_upsert":true}')
    return rest or head
