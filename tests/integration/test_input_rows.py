# ruff: noqa: S608 - the test builds the script; nothing in it comes from outside
"""The rows that a run reads by Python sources, in the measurements of real Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer
from spark_runner.connectors.python_source import TableSource, read_by
from spark_runner.driver.run_metrics import RunMetrics
from spark_runner.driver.spark_status import SparkStatus
from spark_runner.sql.execution.execution import execute
from tests.servers.web import Reply, web_server
from tests.spark_support import LocalSpark
from tests.stream_driver import plan_of

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


@pytest.fixture
def group(local_spark: LocalSpark) -> Iterator[str]:
    """A job group of this test, as other tests have used the same Spark."""
    context, group = local_spark.session().sparkContext, uuid4().hex
    context.setJobGroup(group, "the rows of a test")
    yield group
    context._jsc.clearJobGroup()  # noqa: SLF001 - PySpark cannot clear it


def test_rows_and_bytes_of_a_python_source_are_input_each_once(local_spark: LocalSpark, group: str) -> None:
    session = local_spark.session()
    complaints = list[str]()
    metrics = RunMetrics(SparkStatus(session, group), complaints.append)
    frame = read_by(Numbers, session, {}, StructType().add("id", "long"))
    assert frame.where("id >= 100").groupBy("id").count().count() == ROWS - 100
    metrics.finish()
    assert metrics.document()["input_rows"] == PARTITIONS * ROWS
    assert metrics.document()["input_bytes"] == PARTITIONS * ROWS * 8
    assert complaints == []


def test_records_of_pages_are_input_rows_and_bytes(
    local_spark: LocalSpark, tmp_path: Path, group: str
) -> None:
    session = local_spark.session()
    metrics = RunMetrics(SparkStatus(session, group), pytest.fail)
    records = [{"id": number, "name": "x" * 100} for number in range(40)]
    with web_server(lambda _: Reply(200, body=json.dumps(records).encode())) as server:
        source = f"CREATE TABLE src (id BIGINT, name STRING) USING http OPTIONS (url '{server.url}/items');"
        text = source + "CREATE TABLE dst USING blackhole; INSERT INTO dst SELECT * FROM src;"
        (result,) = execute(session, plan_of(text, tmp_path), lambda _: None, Writer("run", 1))
    assert result["rows"] == len(records)
    metrics.finish()
    found, one = metrics.document(), 1  # the row of the range whose task reads all pages
    assert found["input_rows"] == len(records) + one
    assert 40 * 100 < found["input_bytes"] < 40 * 200
