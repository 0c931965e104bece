"""Rows made at a given rate, as a source."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from spark_runner.connectors.errors import ConnectorError


class RateSource:
    """Rows with the time at which they were made, and their number."""

    def read(
        self,
        session: SparkSession,  # noqa: ARG002 - of Source
        options: Mapping[str, Any],  # noqa: ARG002 - of Source
        schema: StructType | None,  # noqa: ARG002 - of Source
    ) -> DataFrame:
        """Refuse: the rows have no end."""
        raise ConnectorError("connector 'rate' makes rows without end; only a stream can read them")

    def stream(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None
    ) -> DataFrame:
        """The rows since the first start of the query."""
        reader = session.readStream.format("rate").option("rowsPerSecond", str(options["rows_per_second"]))
        reader = reader.option("rampUpTime", f"{options['ramp_up_seconds']}s")
        return _declared(reader.option("numPartitions", str(options["partitions"])).load(), schema)

    def sample(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None, rows: int
    ) -> DataFrame:
        """The first rows of a stream that starts now."""
        seconds = sql.floor(sql.col("id") / int(options["rows_per_second"]))
        time = sql.timestamp_seconds(sql.unix_timestamp(sql.current_timestamp()) + seconds)
        made = session.range(rows).select(time.alias("timestamp"), sql.col("id").alias("value"))
        return _declared(made, schema)


def _declared(frame: DataFrame, schema: StructType | None) -> DataFrame:
    """The declared columns with their types."""
    if schema is None:
        return frame
    return frame.select(*[sql.col(each.name).cast(each.dataType).alias(each.name) for each in schema.fields])
