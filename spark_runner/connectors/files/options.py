"""The options of files: Parquet, CSV, JSON, ORC and text."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import ByteSize, Field, field_validator

from spark_runner.connectors.csv_texts import ESCAPE, refuse_ambiguous_escape
from spark_runner.connectors.errors import ConnectorError, OptionError
from spark_runner.connectors.files.format import MAX_FILES_PER_TRIGGER
from spark_runner.connectors.files.patterns import is_pattern
from spark_runner.connectors.files.position import modified_from
from spark_runner.connectors.options import ConnectorOptions, Guarantee, Names
from spark_runner.protocol.text import did_you_mean

TextCompression = Literal["none", "gzip", "bzip2", "deflate"]
OrcCompression = Literal["none", "snappy", "zlib", "zstd", "lz4"]
ParquetCompression = Literal["none", "snappy", "gzip", "zstd", "lz4"]

_TEXT_COMPRESSION = "of written files: `none`, `gzip`, `bzip2` or `deflate`"
_OF_S3 = ("s3_endpoint", "s3_region", "s3_path_style", "s3_access_key", "s3_secret_key")


class FileOptions(ConnectorOptions):
    """A directory of files, or one file to read."""

    streams: ClassVar[bool] = True
    unwritten: ClassVar[frozenset[str]] = frozenset(
        {"streaming", "max_files_per_trigger", "target_file_size", *_OF_S3}
    )
    unquoted: ClassVar[frozenset[str]] = frozenset({"s3_access_key", "s3_secret_key"})
    aliases: ClassVar[Mapping[str, str]] = {
        "compaction.file-size": "target_file_size",
        "s3.endpoint": "s3_endpoint",
        "s3.region": "s3_region",
        "s3.path.style.access": "s3_path_style",
        "s3.access-key": "s3_access_key",
        "s3.secret-key": "s3_secret_key",
    }
    metadata: ClassVar[tuple[str, ...]] = (
        *("file_path", "file_name", "file_size", "file_modification_time"),
        *("file_block_start", "file_block_length"),
    )
    path: str = Field(min_length=1, description="the folder or file, or its URL; `~` is the home folder")
    mode: Literal["append", "error"] = Field(
        "append",
        description="for INSERT INTO: `append`, or `error` to fail if there is data; OVERWRITE ignores it",
    )
    partition_by: Names = Field((), description="columns whose values become folders")
    target_file_size: ByteSize = Field(
        ByteSize(0),
        ge=0,
        description="write files of about this size, such as `128MB`, after a shuffle; `0`: one per task",
    )
    streaming: bool = Field(
        True, description="in a stream, read only new files; `false` reads all files, for joins"
    )
    max_files_per_trigger: int = Field(
        MAX_FILES_PER_TRIGGER, ge=1, le=1_000_000, description="the most files of one micro-batch"
    )

    s3_endpoint: str = Field("", description="for `s3a://`: the URL of a store other than AWS")
    s3_region: str = Field("", description="for `s3a://`: the region of the bucket")
    s3_path_style: bool = Field(
        False, description="for `s3a://`: put the bucket in the path, not in the host"
    )
    s3_access_key: str = Field(
        "", description="for `s3a://`: the access key; by default, Hadoop finds a login"
    )
    s3_secret_key: str = Field("", description="its secret key; write a reference, `${secret:...}`")

    @field_validator("mode", mode="before")
    @classmethod
    def _is_mode(cls, value: object) -> object:
        if value == "overwrite":
            raise ValueError("INSERT INTO appends; write INSERT OVERWRITE to replace the existing rows")
        return value

    @classmethod
    def check_position(cls, position: str) -> None:
        """A position is a time: only files that were modified then or later are read."""
        try:
            modified_from(position)
        except ConnectorError as error:
            raise OptionError(str(error)) from error

    def guarantee(self, *, has_primary_key: bool) -> Guarantee:  # noqa: ARG002 - of ConnectorOptions
        """Each attempt replaces the files of the earlier ones."""
        return Guarantee.EXACTLY_ONCE

    def refusal_of_writes(self, *, has_primary_key: bool) -> str:  # noqa: ARG002 - of ConnectorOptions
        """A table writes one folder, and reads it under the same path."""
        if not is_pattern(self.path):
            return ""
        return f"its path '{self.path}' is a pattern, for reads alone; choose one without [ ] {{ }} * ? \\"

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that `partition_by` names declared columns, and that options of S3 belong to a bucket."""
        given = [name for name in _OF_S3 if getattr(self, name)]
        if given and not self.path.startswith("s3a://"):
            message = f"option '{given[0]}' is of paths s3a://BUCKET/..., not of '{self.path}'"
            raise OptionError(message, option=given[0])
        if bool(self.s3_access_key) != bool(self.s3_secret_key):
            raise OptionError("options 's3_access_key' and 's3_secret_key' belong together", option=given[-1])
        known = {name.lower() for name in columns}
        for name in self.partition_by:
            if columns and name.lower() not in known:
                message = f"partition_by names '{name}', which is not a column{did_you_mean(name, columns)}"
                raise OptionError(message, option="partition_by", fault="value", quoted=name)


class ParquetOptions(FileOptions):
    """Apache Parquet."""

    compression: ParquetCompression = Field(
        "zstd", description="of written files: `none`, `snappy`, `gzip`, `zstd` or `lz4`"
    )


class CsvOptions(FileOptions):
    """Comma-separated values. Without declared columns, every column is a STRING."""

    unwritten: ClassVar[frozenset[str]] = FileOptions.unwritten | {"escape"}
    compression: TextCompression = Field("none", description=_TEXT_COMPRESSION)
    header: bool = Field(True, description="the first line of each file names the columns")
    delimiter: str = Field(",", min_length=1, max_length=1, description="one character")
    null_value: str = Field("", description="the text that means NULL")
    escape: str = Field(
        ESCAPE,
        min_length=1,
        max_length=1,
        description='the character before a quote within quotes: `"` doubles the quote, as RFC 4180 does;'
        " `'\\\\'` is a backslash",
    )

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check also that one character does not have two meanings."""
        super().check_columns(columns)
        refuse_ambiguous_escape(self.escape, self.delimiter)


class JsonOptions(FileOptions):
    """One JSON object per line."""

    compression: TextCompression = Field("none", description=_TEXT_COMPRESSION)


class OrcOptions(FileOptions):
    """Apache ORC."""

    compression: OrcCompression = Field(
        "zstd", description="of written files: `none`, `snappy`, `zlib`, `zstd` or `lz4`"
    )


class TextOptions(FileOptions):
    """Lines of text: one STRING column, `value` without declared columns; `partition_by` may add others."""

    compression: TextCompression = Field("none", description=_TEXT_COMPRESSION)
