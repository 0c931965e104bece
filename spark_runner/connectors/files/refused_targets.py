"""Refuses targets that an INSERT would damage; a write and an analysis without a write ask it."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.connectors.files.foreign import refuse_foreign_files
from spark_runner.connectors.files.logged import refuse_logged_target
from spark_runner.connectors.files.partitions import refuse_single_partitions
from spark_runner.connectors.files.targets import TargetDirectory


def refuse_target(
    session: SparkSession, target: TargetDirectory, options: Mapping[str, Any], *, overwrite: bool
) -> None:
    """Raise ConnectorError if files cannot be added to a target, or cannot replace it; changes nothing."""
    path = str(options["path"])
    target.check()
    refuse_logged_target(session, path)
    if overwrite:
        refuse_single_partitions(session, options)
        target.check_replaceable()
        refuse_foreign_files(session, path)
