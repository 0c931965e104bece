"""Sinks whose target does not accept even numbers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from spark_runner.connectors.base import Writer, WriteRequest, Written
from spark_runner.connectors.rows import row_of


class RejectingSink:
    """Reports the text that the target refused."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Nothing is written."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        assert request.mode == options.get("mode", "append")
        even = frame.filter("n % 2 = 0")
        record, reason = sql.col("n").cast("string"), sql.lit("it is even")
        refused = even.select(record.alias("record"), reason.alias("reason"))
        return Written(frame.count() - even.count(), rejected=refused)


class RowRejectingSink(RejectingSink):
    """Reports the rows that the target refused."""

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        even = frame.filter("n % 2 = 0")
        refused = even.select(row_of(even).alias("row"), sql.lit("it is even").alias("reason"))
        return replace(super().write(frame, options, request), rejected=refused)
