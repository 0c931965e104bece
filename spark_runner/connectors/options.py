"""The base of the options of all connectors, and their check when a job is submitted.

Option names ignore case, `_`, `-` and `.`: `nullValue`, `null_value` and `NULL.VALUE` are the same.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from spark_runner.connectors import registry
from spark_runner.connectors.errors import ConnectorError, OptionError
from spark_runner.protocol.text import did_you_mean, nearest, without_prefix


def _names(value: object) -> object:
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_names)]


class Guarantee(StrEnum):
    """How often a row of a finished job is in its target, after any number of attempts."""

    EXACTLY_ONCE = "exactly once"
    AT_LEAST_ONCE = "at least once"


class ConnectorOptions(BaseModel):
    """The base of the options of all connectors; the fields of a subclass are the options of its tables."""

    # A script uses few connectors; pydantic builds only their models.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    aliases: ClassVar[Mapping[str, str]] = {}  # further names of options, which other engines use -> field
    metadata: ClassVar[tuple[str, ...]] = ()  # what it knows of each row, for columns METADATA FROM
    streams: ClassVar[bool] = False  # its source can be read in micro-batches
    unbounded: ClassVar[bool] = False  # its rows have no end: mode batch cannot read it
    is_constant: ClassVar[bool] = False  # its rows never change, so a stream may read them at its start
    unwritten: ClassVar[frozenset[str]] = frozenset()  # options that a plan leaves out at their default
    only_adds: ClassVar[bool] = False  # its sink cannot replace all rows: no INSERT OVERWRITE

    @property
    def upserts(self) -> bool:
        """Whether its sink replaces rows by the PRIMARY KEY of the table."""
        return False

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise OptionError if the options do not match the declared `columns` (empty: none declared)."""

    @classmethod
    def check_position(cls, position: str) -> None:  # noqa: ARG003 - of subclasses
        """Raise OptionError if its source cannot begin a stream at this position, which a user gives."""
        raise OptionError("its connector cannot begin at a position; use --fresh to read all its data")

    def place(self) -> str:
        """Where the rows are, such as "kafka://host/topic": equal for the same rows; empty if unknown."""
        return ""

    def guarantee(self, *, has_primary_key: bool) -> Guarantee:  # noqa: ARG002 - of subclasses
        """What its sink promises."""
        return Guarantee.AT_LEAST_ONCE


def options_of(connector: str) -> type[ConnectorOptions]:
    """The options of a known connector; raises OptionError if its package is broken."""
    try:
        found = registry.find(connector)
        model = registry.load(found.options) if found else None
    except ConnectorError as error:
        raise OptionError(str(error)) from error
    if not (isinstance(model, type) and issubclass(model, ConnectorOptions)):
        raise OptionError(f"connector '{connector}' has no ConnectorOptions")
    return model


def validate(connector: str, options: Mapping[str, str], columns: Sequence[str] = ()) -> ConnectorOptions:
    """The checked options of one table of a known connector, with these declared columns.

    Raises OptionError with all errors.
    """
    model = options_of(connector)
    fields = {folded(name): field for name, field in model.aliases.items()}
    fields |= {folded(name): name for name in model.model_fields}
    errors: list[OptionError] = []
    meant = set[str | None]()  # the fields nearest to unknown names: they are not reported as missing, too
    values: dict[str, str] = {}
    written: dict[str, str] = {}  # field -> as the user wrote it
    for name, value in options.items():
        field = fields.get(folded(name))
        if field is None:
            hint = did_you_mean(name, model.model_fields) or f"; it takes {', '.join(model.model_fields)}"
            message = f"unknown option '{name}' of connector '{connector}'{hint}"
            errors.append(OptionError(message, option=name))
            meant.add(nearest(name, model.model_fields))
        elif field in values and values[field] == value and folded(name) != folded(written[field]):
            continue  # scripts for two generations of an engine name it twice
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
    fields = type(options).model_fields
    at_default = {name for name in options.unwritten if getattr(options, name) == fields[name].default}
    return options.model_dump(mode="json", exclude=at_default)


def _option_error(connector: str, details: ErrorDetails, written: Mapping[str, str]) -> OptionError:
    field = str(details["loc"][0])
    if details["type"] == "missing":
        return OptionError(f"connector '{connector}' needs option '{field}'")
    reason = without_prefix(details["msg"])
    given = str(details["input"])
    message = f"option '{field}' of connector '{connector}' cannot be '{given}': {reason}"
    return OptionError(message, option=written[field], fault="value", quoted=given)


def folded(name: str) -> str:
    """The name of an option as it is compared: without case, `_`, `-` and `.`."""
    return name.lower().replace("_", "").replace("-", "").replace(".", "")
