"""Adds rows to a quarantine that outlives runs, also of earlier versions."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from spark_runner.connectors.files.sink import ParquetSink
from spark_runner.connectors.files.targets import TargetDirectory


class QuarantineSink(ParquetSink):
    """The files of a folder that belongs to the platform alone; those of earlier versions lack columns."""

    def _can_be_added(
        self,
        frame: DataFrame,  # noqa: ARG002 - of the base class
        target: TargetDirectory,
        options: Mapping[str, Any],  # noqa: ARG002 - likewise
        mode: str,  # noqa: ARG002 - likewise
    ) -> bool:
        """Whether the folder has no data; its files may have other columns."""
        return target.first_file() is None
