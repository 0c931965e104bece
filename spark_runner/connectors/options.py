"""The options of every connector, checked when a job is submitted.

Option names ignore case, `_` and `-`: `nullValue`, `null_value` and `NULLVALUE` are the same.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from spark_runner.connectors.errors import OptionError
from spark_runner.protocol.text import did_you_mean, nearest

TextCompression = Literal["none", "gzip", "bzip2", "deflate"]
ParquetCompression = Literal["none", "snappy", "gzip", "zstd", "lz4"]


def _names(value: object) -> object:
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_names)]


class ConnectorOptions(BaseModel):
    """The base of the options of all connectors."""

    # A script uses few connectors; pydantic builds only their models.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    readable: ClassVar[bool]
    writable: ClassVar[bool]
    metadata: ClassVar[tuple[str, ...]] = ()  # what it knows of each row, for columns METADATA FROM

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise OptionError if the options do not match the declared `columns` (empty: none declared)."""


class FileOptions(ConnectorOptions):
    """A directory of files, or one file to read."""

    readable: ClassVar[bool] = True
    writable: ClassVar[bool] = True
    metadata: ClassVar[tuple[str, ...]] = (
        *("file_path", "file_name", "file_size", "file_modification_time"),
        *("file_block_start", "file_block_length"),
    )
    path: str = Field(min_length=1)
    mode: Literal["append", "error"] = "append"  # of INSERT INTO; INSERT OVERWRITE ignores it
    partition_by: Names = ()

    @field_validator("mode", mode="before")
    @classmethod
    def _is_mode(cls, value: object) -> object:
        if value == "overwrite":
            raise ValueError("INSERT INTO appends; write INSERT OVERWRITE to replace the existing rows")
        return value

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that `partition_by` names only declared columns."""
        known = {name.lower() for name in columns}
        for name in self.partition_by:
            if columns and name.lower() not in known:
                message = f"partition_by names '{name}', which is not a column{did_you_mean(name, columns)}"
                raise OptionError(message, option="partition_by", fault="value", quoted=name)


class ParquetOptions(FileOptions):
    """Apache Parquet."""

    compression: ParquetCompression = "zstd"


class CsvOptions(FileOptions):
    """Comma-separated values; without declared columns every column is a STRING."""

    compression: TextCompression = "none"
    header: bool = True
    delimiter: str = Field(",", min_length=1, max_length=1)
    null_value: str = ""


class JsonOptions(FileOptions):
    """One JSON object per line."""

    compression: TextCompression = "none"


class PrintOptions(ConnectorOptions):
    """Rows on standard output, to inspect a query."""

    readable: ClassVar[bool] = False
    writable: ClassVar[bool] = True
    limit: int = Field(20, ge=1, le=10_000)


class InlineOptions(ConnectorOptions):
    """Rows in the script itself."""

    readable: ClassVar[bool] = True
    writable: ClassVar[bool] = False
    rows: str

    @field_validator("rows")
    @classmethod
    def _rows_of_values(cls, value: str) -> str:
        try:
            rows = json.loads(value)
        except RecursionError as error:
            raise ValueError("not JSON that can be read: it is nested too deeply") from error
        except ValueError as error:  # also for a number of thousands of digits
            raise ValueError(f"not JSON: {error}") from error
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise ValueError('a list of rows is needed, like [[1, "a"], [2, "b"]]')
        return value

    def check_columns(self, columns: Sequence[str]) -> None:
        """Check that columns are declared, and that each row has one value per column."""
        if not columns:
            raise OptionError("a table of connector 'inline' needs declared columns")
        for number, row in enumerate(json.loads(self.rows), start=1):
            if len(row) != len(columns):
                message = f"row {number} has {len(row)} values for {len(columns)} columns"
                raise OptionError(message, option="rows", fault="value")


CONNECTORS: Mapping[str, type[ConnectorOptions]] = {
    "parquet": ParquetOptions,
    "csv": CsvOptions,
    "json": JsonOptions,
    "print": PrintOptions,
    "inline": InlineOptions,
}


def validate(connector: str, options: Mapping[str, str], columns: Sequence[str] = ()) -> ConnectorOptions:
    """The checked options of one table of a connector in CONNECTORS, with these declared columns.

    Raises OptionError with all errors.
    """
    model = CONNECTORS[connector]
    fields = {_folded(name): name for name in model.model_fields}
    errors: list[OptionError] = []
    meant = set[str | None]()  # the fields nearest to unknown names: they are not reported as missing, too
    values: dict[str, str] = {}
    written: dict[str, str] = {}  # field -> as the user wrote it
    for name, value in options.items():
        field = fields.get(_folded(name))
        if field is None:
            hint = did_you_mean(name, model.model_fields) or f"; it takes {', '.join(model.model_fields)}"
            message = f"unknown option '{name}' of connector '{connector}'{hint}"
            errors.append(OptionError(message, option=name))
            meant.add(nearest(name, model.model_fields))
        elif field in values:
            errors.append(OptionError(f"option '{field}' is given twice", option=name))
        else:
            values[field] = value
            written[field] = name
    checked = None
    try:
        checked = model.model_validate(values)
        checked.check_columns(columns)
    except ValidationError as error:
        errors += [
            _option_error(connector, details, written)
            for details in error.errors()
            if not (details["type"] == "missing" and details["loc"][0] in meant)
        ]
    except OptionError as error:
        errors.append(error)
    if errors or checked is None:
        first, *others = errors
        first.others = tuple(others)
        raise first
    return checked


def to_plan(options: ConnectorOptions) -> dict[str, Any]:
    """The options as JSON for the plan."""
    return options.model_dump(mode="json")


def _option_error(connector: str, details: ErrorDetails, written: Mapping[str, str]) -> OptionError:
    field = str(details["loc"][0])
    if details["type"] == "missing":
        return OptionError(f"connector '{connector}' needs option '{field}'")
    reason = details["msg"].removeprefix("Value error, ")
    given = str(details["input"])
    message = f"option '{field}' of connector '{connector}' cannot be '{given}': {reason}"
    return OptionError(message, option=written[field], fault="value", quoted=given)


def _folded(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
