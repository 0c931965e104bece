"""The error of a record of a file that does not fit says which one it is, and what to do."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_runner.driver.outcome import is_permanent
from spark_runner.sql.execution.execution import execute
from spark_runner.sql.text.errors import SqlError
from tests.stream_driver import plan_of

pytestmark = pytest.mark.spark

RECORDS = {
    "csv": 'id,amount\n1,2.5\n7,"n/a"\n',
    "json": '{"id": 1, "amount": 2.5}\n{"id": 7, "amount": "n/a"}\n',
}

INSERT = "CREATE TABLE dst USING parquet OPTIONS (path 'out'); INSERT INTO dst SELECT * FROM orders"


@pytest.mark.parametrize("file_format", RECORDS)
@pytest.mark.parametrize("statement", [INSERT, "SELECT * FROM orders"])
def test_the_error_names_table_file_and_limit_and_is_not_retried(
    spark: SparkSession, tmp_path: Path, file_format: str, statement: str
) -> None:
    file = tmp_path / "in é" / f"part.{file_format}"
    file.parent.mkdir()
    file.write_text(RECORDS[file_format])
    script = f"""SET spark.sql.shuffle.partitions = 1;
CREATE TABLE orders (id INT, amount DOUBLE) USING {file_format} OPTIONS (path 'in é');
{statement};"""
    with pytest.raises(SqlError) as caught:
        execute(spark, plan_of(script, tmp_path), lambda _: None)
    error = caught.value
    assert (error.line, error.column) == (2, 1), "the declaration of the table"
    assert error.message.startswith("table 'orders': a record of 'file:///")
    for words in (f"part.{file_format}'", "n/a", "7", "SET job.error.limit.rows = "):
        assert words in error.message
    assert "FAILED_READ_FILE" not in error.message
    assert not is_permanent(error), "the file may still be written"
    os.utime(file, (1_700_000_000, 1_700_000_000))
    assert is_permanent(error)


def test_a_file_that_is_no_file_of_its_format_stays_an_error_of_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").write_text("no Parquet")
    script = "CREATE TABLE t (id INT) USING parquet OPTIONS (path 'in');\nSELECT * FROM t;"
    with pytest.raises(SqlError) as caught:
        execute(spark, plan_of(script, tmp_path), lambda _: None)
    assert "job.error.limit.rows" not in caught.value.message
