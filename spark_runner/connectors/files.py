"""Parquet, CSV and JSON files, as source and as sink."""

import os
import urllib.parse
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from spark_runner.connectors.base import PREVIEW_ROWS, Written, preview, text_cells
from spark_runner.connectors.directories import refuse_foreign_files
from spark_runner.connectors.errors import ConnectorError


class Files:
    """One file format of Spark; the options are those of `spark_runner.connectors.options`."""

    def __init__(self, file_format: str) -> None:
        self.format = file_format

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The files below `path`; a record that does not fit the declared columns fails the job."""
        reader = session.read.format(self.format).options(**self._format_options(options))
        if self.format != "parquet":
            # Spark would turn what it cannot read into NULL and say nothing.
            reader = reader.option("mode", "FAILFAST")
        if self.format == "csv" and options["header"]:
            # Otherwise declared columns are matched by position and the header is never looked at.
            reader = reader.option("enforceSchema", "false")
        if schema is not None:
            reader = reader.schema(schema)
        return reader.load(options["path"])

    def write(self, frame: DataFrame, options: Mapping[str, Any], mode: str) -> Written:
        """Write the frame; raises ConnectorError where that would destroy its input or foreign files."""
        path = str(options["path"])
        _refuse_own_input(frame, path)
        if mode == "overwrite":
            refuse_foreign_files(frame.sparkSession, path)
        observation = Observation()
        counted = frame.observe(observation, sql.expr("count(1)").alias("rows"))
        writer = counted.write.format(self.format).mode(mode).options(**self._format_options(options))
        if self.format == "json":
            writer = writer.option("ignoreNullFields", "false")
        if options["partition_by"]:
            writer = writer.partitionBy(*options["partition_by"])
        writer.option("compression", options["compression"]).save(path)
        return Written(int(observation.get["rows"]), self._read_back(frame, options))

    def _read_back(self, frame: DataFrame, options: Mapping[str, Any]) -> list[list[str | None]]:
        reader = frame.sparkSession.read.format(self.format).options(**self._format_options(options))
        if self.format == "parquet":
            reader = reader.schema(frame.schema)  # Spark would run a job to find it in the files
        else:
            # The text as it stands in the files; nothing is parsed, so nothing can fail to.
            partitions = {name.lower() for name in options["partition_by"]}
            names = [name for name in frame.columns if name.lower() not in partitions]
            names += [name for name in frame.columns if name.lower() in partitions]
            reader = reader.schema(StructType([StructField(name, StringType()) for name in names]))
        columns = [sql.col(f"`{name.replace('`', '``')}`") for name in frame.columns]
        return preview(text_cells(reader.load(options["path"]).select(*columns), PREVIEW_ROWS))

    def _format_options(self, options: Mapping[str, Any]) -> dict[str, str]:
        """Spark's options that a reader and a writer share."""
        if self.format != "csv":
            return {}
        return {
            "header": str(options["header"]).lower(),
            "sep": options["delimiter"],
            "nullValue": options["null_value"],
        }


def _refuse_own_input(frame: DataFrame, path: str) -> None:
    """Refuse a target that holds files which the query reads, however they are named there."""
    target = _local(path)
    for name in _input_files(frame):
        found = _local(name)
        if found == target or found.startswith(target.rstrip("/") + "/"):
            raise ConnectorError(f"refused: the query reads '{found}', which lies in its target '{path}'")


def _input_files(frame: DataFrame) -> list[str]:
    """All files that a query reads; `DataFrame.inputFiles` alone leaves out those of subqueries."""
    files = frame.inputFiles()
    java, jvm = frame.sparkSession._jsparkSession, frame.sparkSession._jvm  # noqa: SLF001 - no public way to subqueries
    if jvm is not None:
        subqueries = frame._jdf.queryExecution().analyzed().subqueriesAll()  # noqa: SLF001 - as above
        for index in range(subqueries.size()):
            plan = subqueries.apply(index)
            files += jvm.org.apache.spark.sql.classic.Dataset.ofRows(java, plan).inputFiles()
    return files


def _local(location: str) -> str:
    """A local path with its links followed; other locations as they are."""
    if location.startswith("file:"):
        location = urllib.parse.unquote("/" + location.removeprefix("file:").lstrip("/"))
    return os.path.realpath(location) if location.startswith("/") else location
