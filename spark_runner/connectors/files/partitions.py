"""Columns of `partition_by`, whose values are names of folders: what these cannot hold or replace."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.errors import ConnectorError

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def refuse_single_partitions(session: SparkSession, options: Mapping[str, Any]) -> None:
    """Raise ConnectorError if the session asks Spark to overwrite no partitions but those with new rows."""
    if options["partition_by"] and str(session.conf.get(_OVERWRITE_MODE)).lower() == "dynamic":
        raise ConnectorError(
            "refused: INSERT OVERWRITE replaces the whole folder with all of its partitions, and"
            f" {_OVERWRITE_MODE} is dynamic; set it to static, or give each partition a table of its own,"
            " whose path is the folder of the partition"
        )
