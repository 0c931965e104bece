"""A sink whose target does not accept even numbers."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_runner.connectors.base import Writer, WriteRequest, Written


class RejectingSink:
    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Nothing is written."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        assert request.mode == options.get("mode", "append")
        even = frame.filter("n % 2 = 0")
        record, reason = sql.col("n").cast("string"), sql.lit("it is even")
        refused = even.select(record.alias("record"), reason.alias("reason"))
        return Written(frame.count() - even.count(), rejected=refused)
