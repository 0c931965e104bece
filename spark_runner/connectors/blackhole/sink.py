"""Rows that are counted and dropped, as a sink."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.base import Writer, WriteRequest, Written


class BlackholeSink:
    """Computes all columns of all rows, and writes nothing."""

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Do nothing: there are no rows."""

    def write(
        self,
        frame: DataFrame,
        options: Mapping[str, Any],  # noqa: ARG002 - of Sink
        request: WriteRequest,  # noqa: ARG002 - of Sink
    ) -> Written:
        """Count the rows."""
        observation = Observation()
        # Positions, not names: two columns of a query may have the same name.
        positional = frame.toDF(*[f"c{index}" for index in range(len(frame.columns))])
        counted = positional.observe(observation, sql.expr("count(1)").alias("rows"))
        counted.write.format("noop").mode("overwrite").save()
        return Written(int(observation.get["rows"]))

    def probe(self, session: SparkSession, options: Mapping[str, Any], schema: StructType) -> None:
        """Do nothing: every row can be dropped."""
