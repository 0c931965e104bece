"""Files as sinks."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from spark_runner.connectors.base import (
    PREVIEW_ROWS,
    Writer,
    WriteRequest,
    Written,
    preview,
    text_cells,
)
from spark_runner.connectors.errors import ConnectorError, TargetChanged
from spark_runner.connectors.files.alike import refuse_unlike_file
from spark_runner.connectors.files.file_sizes import sized
from spark_runner.connectors.files.format import COLUMNAR, format_options
from spark_runner.connectors.files.inputs import refuse_own_input
from spark_runner.connectors.files.patterns import escaped
from spark_runner.connectors.files.refused_targets import refuse_target
from spark_runner.connectors.files.s3 import use_bucket
from spark_runner.connectors.files.targets import TargetDirectory
from spark_runner.connectors.files.unheld import refuse_unheld_columns, refuse_unheld_rows, row_counts
from spark_runner.connectors.rows import JSON_OPTIONS, column


class FileSink:
    """One file format of Spark."""

    format: ClassVar[str]

    def recover(self, session: SparkSession, options: Mapping[str, Any], writer: Writer) -> None:
        """Remove the output of earlier attempts of this run, and finish incomplete swaps."""
        use_bucket(session, options)
        TargetDirectory(session, str(options["path"]), writer).recover()

    def write(self, frame: DataFrame, options: Mapping[str, Any], request: WriteRequest) -> Written:
        """Write the frame beside its target, then move it there.

        Raises ConnectorError if that would destroy its input or foreign files, or mix different columns.
        """
        path, session, mode = str(options["path"]), frame.sparkSession, request.mode
        use_bucket(session, options)
        refuse_own_input(frame, path)
        refuse_unheld_columns(frame.schema, self.format, options)
        target = TargetDirectory(session, path, request.writer)
        refuse_target(session, target, options, overwrite=mode == "overwrite")
        is_empty = mode == "overwrite" or self._can_be_added(frame, target, options, mode)
        observation = Observation()
        try:
            with sized(frame, self.format, options) as few:
                counted = few.observe(observation, *row_counts(frame.schema, self.format, options))
                self._save(counted, options, target.staging)
            rows = refuse_unheld_rows(observation.get, self.format)
            if target.is_local and not (session.sparkContext.master or "").startswith("local"):
                self._refuse_unseen(session, target, options, rows)
            shown = self._read_back(frame, options, target.staging) if request.is_shown else []
            with target.locked():
                if mode == "overwrite":
                    target.replace()
                else:
                    if is_empty:  # it was empty before, and another writer may have added rows
                        self._can_be_added(frame, target, options, mode)
                    target.add()
        finally:
            target.discard()
        return Written(rows, shown)

    def _save(self, frame: DataFrame, options: Mapping[str, Any], folder: str) -> None:
        saver = (
            frame.write.format(self.format)
            .mode("overwrite")
            .options(**format_options(self.format, options))
            .option("compression", options["compression"])
            .option("partitionOverwriteMode", "static")  # what an earlier write left in `folder` goes
        )
        if self.format in {"csv", "json"}:
            saver = saver.options(**JSON_OPTIONS)  # times with microseconds
        if self.format == "json":
            saver = saver.option("ignoreNullFields", "false")
        if options["partition_by"]:
            saver = saver.partitionBy(*options["partition_by"])
        saver.save(folder)

    def _can_be_added(
        self, frame: DataFrame, target: TargetDirectory, options: Mapping[str, Any], mode: str
    ) -> bool:
        """Whether the target has no data; raises ConnectorError if its data has other columns."""
        some_file, path = target.first_file(), str(options["path"])
        if some_file is None:
            return True
        if mode == "error":
            raise ConnectorError(
                f"refused: there are data in '{path}' already, and the table has mode 'error'"
            )
        try:
            refuse_unlike_file(frame, some_file, self.format, options, format_options(self.format, options))
        except AnalysisException as error:
            if target.first_file() != some_file:
                raise TargetChanged(f"'{path}' is being replaced by another job") from error
            raise
        return False

    def _refuse_unseen(
        self, session: SparkSession, target: TargetDirectory, options: Mapping[str, Any], rows: int
    ) -> None:
        """Raise ConnectorError if executors on other hosts wrote files that this host does not see."""
        seen, files, staged = 0, target.staged_files(), escaped(target.staging)
        if files and self.format in COLUMNAR:
            seen = session.read.format(self.format).load(staged).count()
        elif files:
            # Lines: a value with line breaks counts more than once, and every row at least once.
            headers = files if options.get("header") else 0
            seen = session.read.text(staged).count() - headers
        if seen < rows:
            raise ConnectorError(
                f"refused: the executors wrote {rows} rows, of which this host sees {seen}; "
                f"'{options['path']}' must lie in a folder that all nodes share"
            )

    def _read_back(self, frame: DataFrame, options: Mapping[str, Any], folder: str) -> list[list[str | None]]:
        reader = frame.sparkSession.read.format(self.format).options(**format_options(self.format, options))
        if self.format in COLUMNAR:
            reader = reader.schema(frame.schema)  # Spark would run a job to find it in the files
        else:
            # The text in the files, unparsed, so that no value can fail to parse.
            names, partitions = _divided(frame, options)
            fields = [StructField(name, StringType()) for name in [*names, *partitions]]
            reader = reader.schema(StructType(fields))
        columns = [column(name) for name in frame.columns]
        return preview(text_cells(reader.load(escaped(folder)).select(*columns), PREVIEW_ROWS))


def _divided(frame: DataFrame, options: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The columns in the files, and the partition columns, which become folders."""
    partitions = {name.lower() for name in options["partition_by"]}
    names = [name for name in frame.columns if name.lower() not in partitions]
    return names, [name for name in frame.columns if name.lower() in partitions]


class ParquetSink(FileSink):
    """Apache Parquet."""

    format = "parquet"


class CsvSink(FileSink):
    """Comma-separated values."""

    format = "csv"


class JsonSink(FileSink):
    """One JSON object per line."""

    format = "json"


class OrcSink(FileSink):
    """Apache ORC."""

    format = "orc"


class TextSink(FileSink):
    """Lines of text."""

    format = "text"
