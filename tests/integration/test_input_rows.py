"""The rows that a run reads by Python sources, in the measurements of real Spark."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_runner.connectors.python_source import TableSource, read_by
from spark_runner.driver.run_metrics import RunMetrics
from spark_runner.driver.spark_status import SparkStatus
from tests.spark_support import LocalSpark

if TYPE_CHECKING:
    from pyarrow import RecordBatch  # type: ignore[import-untyped]  # pyarrow publishes no types

PARTITIONS, ROWS = 3, 500


class Numbers(TableSource):
    """A source like those of Redis and Elasticsearch."""

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - of DataSource
        return NumberReader()


class NumberReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> "Iterator[RecordBatch]":  # noqa: ARG002 - of DataSourceReader
        import pyarrow as pa  # noqa: PLC0415 - in a task

        yield pa.RecordBatch.from_pydict({"id": list(range(ROWS))})


def test_rows_of_a_python_source_are_input_rows_each_once(local_spark: LocalSpark) -> None:
    session = local_spark.session()
    complaints = list[str]()
    metrics = RunMetrics(SparkStatus(session), complaints.append)
    metrics.look()
    before = metrics.document().get("input_rows", 0)
    frame = read_by(Numbers, session, {}, StructType().add("id", "long"))
    assert frame.where("id >= 100").groupBy("id").count().count() == ROWS - 100
    metrics.finish()
    assert metrics.document()["input_rows"] - before == PARTITIONS * ROWS
    assert complaints == []
