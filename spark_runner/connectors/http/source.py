"""Pages of JSON as rows."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from spark_runner.connectors.arrow_tasks import in_tasks
from spark_runner.connectors.errors import ConnectorError
from spark_runner.connectors.http.client import Client
from spark_runner.connectors.http.pages import Pages
from spark_runner.connectors.read_counts import ReadCount
from spark_runner.protocol.redacted import spellings_within

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

_UNREAD = "__orchestrator_unread"
_SHOWN = 200  # characters of a record in an error message
_MASKED = "masked"


class HttpSource:
    """The records of all pages; one task reads them, a page after the other."""

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The declared columns of the records; one that does not fit them fails the job."""
        if schema is None:
            raise ConnectorError("a table of connector 'http' needs declared columns")
        row = _parsed(schema, _UNREAD)
        begin = sql.coalesce(_MASKED, sql.substring(row[_UNREAD], 1, _SHOWN))
        words = sql.concat(sql.lit("a record does not fit the declared columns: "), begin)
        whole = sql.when(row[_UNREAD].isNull(), row).otherwise(sql.raise_error(words))
        return _records(session, options).select(whole.alias("row")).select(*_cells(schema.fieldNames()))

    def read_all(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType, record: str
    ) -> DataFrame:
        """Likewise, with the text of a record that does not fit in the column `record`."""
        row = _parsed(schema, record)
        return (
            _records(session, options)
            .select(row.alias("row"))
            .select(*_cells([*schema.fieldNames(), record]))
        )


def _parsed(schema: StructType, unread: str) -> Any:
    wide = StructType([*schema.fields, StructField(unread, StringType())])
    return sql.from_json("value", wide, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": unread})


def _cells(names: list[str]) -> list[Any]:
    return [sql.col("row")[name].alias(name) for name in names]


def _records(session: SparkSession, options: Mapping[str, Any]) -> DataFrame:
    texts = tuple(map(str, options.values()))
    task = Reads(dict(options), tuple(spellings_within(texts)), ReadCount(session))
    return in_tasks(session.range(0, 1, 1, 1), task, f"value STRING, {_MASKED} STRING", texts)


class Reads:
    """Reads all pages, in a task of Spark."""

    def __init__(self, options: Mapping[str, Any], secrets: tuple[str, ...], count: ReadCount) -> None:
        self.options, self.secrets, self.count = options, secrets, count

    def __call__(self, batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        """A batch for each page: its records, and what a message may show of those that have a secret."""
        import pyarrow as pa  # noqa: PLC0415 - drivers do without

        schema = pa.schema([("value", pa.string()), (_MASKED, pa.string())])
        for _ in batches:
            with closing(Client(self.options, self.secrets)) as client:
                for page in Pages(client, self.options):
                    shown = [client.shown(each) if client.shown.has_secret(each) else None for each in page]
                    batch = pa.RecordBatch.from_pydict({"value": page, _MASKED: shown}, schema)
                    self.count.add(batch.num_rows, batch.column("value").nbytes)
                    yield batch
