"""Files as sources."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructField, StructType

from spark_runner.connectors.errors import TargetChanged
from spark_runner.connectors.files.format import COLUMNAR, MAX_FILES_PER_TRIGGER, format_options
from spark_runner.connectors.files.hidden import refuse_hidden_file
from spark_runner.connectors.files.json_numbers import as_declared
from spark_runner.connectors.files.logged import refuse_lake
from spark_runner.connectors.files.position import modified_from
from spark_runner.connectors.files.s3 import use_bucket
from spark_runner.connectors.files.targets import complete_commit, is_in_swap, refuse_open_commit
from spark_runner.connectors.json_types import columns_read_as

_Reader = TypeVar("_Reader", DataFrameReader, DataStreamReader)
_ANY_AGE = "36500d"  # Spark's default leaves out a new file that is a week older than the newest one


class FileSource:
    """One file format of Spark."""

    format: ClassVar[str]

    def read(self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None) -> DataFrame:
        """The files below `path`; a record that does not fit the declared columns fails the job."""
        return self._loaded(session, options, schema)

    def stream(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None
    ) -> DataFrame:
        """The files below `path` in micro-batches of at most `max_files_per_trigger`, oldest first."""
        return self._streamed(session, options, schema)

    def _streamed(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType | None,
        record: str | None = None,
    ) -> DataFrame:
        self._check(session, options)
        reader = self._reader(session.readStream, options, schema, record)
        files = options.get("max_files_per_trigger", MAX_FILES_PER_TRIGGER)
        reader = reader.option("maxFilesPerTrigger", str(files)).option("maxFileAge", _ANY_AGE)
        return self._as_declared(reader.load(str(options["path"])), schema, record)

    def stream_from(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType | None, position: str
    ) -> DataFrame:
        """The stream without the rows of files that were modified before a time."""
        return _modified_since(self.stream(session, options, schema), position)

    def _loaded(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType | None,
        record: str | None = None,
    ) -> DataFrame:
        self._check(session, options)
        reader = self._reader(session.read, options, schema, record)
        try:
            frame = reader.load(options["path"])
            refuse_open_commit(session, str(options["path"]))  # it began while Spark listed the files
        except AnalysisException as error:
            # The path is missing only during the swap of another job.
            if error.getCondition() == "PATH_NOT_FOUND" and is_in_swap(session, str(options["path"])):
                raise TargetChanged(f"'{options['path']}' is being replaced by another job") from error
            raise
        return self._as_declared(frame, schema, record)

    def _check(self, session: SparkSession, options: Mapping[str, Any]) -> None:
        """Refuse a path whose files are not the rows of a table, and complete what a dead driver left."""
        use_bucket(session, options)
        refuse_hidden_file(session, str(options["path"]))
        refuse_lake(session, str(options["path"]))
        complete_commit(session, str(options["path"]))

    def _reader(
        self, reader: _Reader, options: Mapping[str, Any], schema: StructType | None, record: str | None
    ) -> _Reader:
        """A reader with all options; with `record`, it keeps the text of records that do not fit."""
        reader = reader.format(self.format).options(**format_options(self.format, options))
        if record is not None:
            reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", record)
        elif self.format not in COLUMNAR:
            # Spark would silently turn unreadable values into NULL.
            reader = reader.option("mode", "FAILFAST")
        if self.format == "csv" and options["header"]:
            # Otherwise Spark matches declared columns by position and ignores the header.
            reader = reader.option("enforceSchema", "false")
        return reader if schema is None else reader.schema(self._read_schema(schema, record))

    def _read_schema(self, schema: StructType, record: str | None) -> StructType:
        columns = columns_read_as(schema) if self.format == "json" else schema
        return columns if record is None else StructType([*columns.fields, StructField(record, StringType())])

    def _as_declared(self, frame: DataFrame, schema: StructType | None, record: str | None) -> DataFrame:
        return frame if schema is None or self.format != "json" else as_declared(frame, schema, record)


def _modified_since(frame: DataFrame, position: str) -> DataFrame:
    """The rows of files that were not modified before a time: Spark refuses `modifiedAfter` in streams."""
    begin = sql.timestamp_micros(sql.lit(modified_from(position)))
    return frame.where(sql.col("_metadata.file_modification_time") >= begin)


class ParquetSource(FileSource):
    """Apache Parquet."""

    format = "parquet"


class DecodedSource(FileSource):
    """A format whose records Spark decodes."""

    def read_all(
        self, session: SparkSession, options: Mapping[str, Any], schema: StructType, record: str
    ) -> DataFrame:
        """All records; those that do not fit have their text in the column `record`."""
        return self._loaded(session, options, schema, record)

    def stream_all(
        self,
        session: SparkSession,
        options: Mapping[str, Any],
        schema: StructType,
        record: str,
        position: str | None,
        *,
        reached: Sequence[str] | None,  # noqa: ARG002 - of PermissiveStream
    ) -> DataFrame:
        """All records of new files; those that do not fit have their text in the column `record`."""
        frame = self._streamed(session, options, schema, record)
        return frame if position is None else _modified_since(frame, position)


class CsvSource(DecodedSource):
    """Comma-separated values."""

    format = "csv"


class JsonSource(DecodedSource):
    """One JSON object per line."""

    format = "json"


class OrcSource(FileSource):
    """Apache ORC."""

    format = "orc"


class TextSource(FileSource):
    """Lines of text."""

    format = "text"
