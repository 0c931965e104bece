"""The base of the options of all connectors, and their check when a job is submitted.

Option names ignore case, `_` and `-`: `nullValue`, `null_value` and `NULLVALUE` are the same.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
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
    metadata: ClassVar[tuple[str, ...]] = ()  # what it knows of each row, for columns METADATA FROM
    streams: ClassVar[bool] = False  # its source can be read in micro-batches
    unbounded: ClassVar[bool] = False  # its rows have no end: without a mode, a script streams them
    reads_in_batch: ClassVar[bool] = False  # though unbounded: mode batch reads the rows that are there
    is_constant: ClassVar[bool] = False  # its rows never change, so a stream may read them at its start
    unwritten: ClassVar[frozenset[str]] = frozenset()  # options that a plan leaves out at their default
    unquoted: ClassVar[frozenset[str]] = (
        frozenset()
    )  # options whose values may hold a secret: no error has them
    deciding: ClassVar[frozenset[str]] = frozenset()  # options that decide which rows there are, as its place
    files: ClassVar[tuple[str, ...]] = ()  # options that name a file: a relative path is beside the script
    only_adds: ClassVar[bool] = False  # its sink cannot replace all rows: no INSERT OVERWRITE
    batch_only: ClassVar[str] = ""  # why its sink writes no micro-batches; empty: it does
    upserts: ClassVar[bool] = False  # its sink replaces rows by the PRIMARY KEY of the table
    aliases: ClassVar[Mapping[str, str]] = {}  # further names of options, which users write, to fields
    prefixes: ClassVar[Mapping[str, str]] = {}  # of names that a table chooses, to a field with all of them
    without_effect: ClassVar[tuple[str, ...]] = ()  # names of options that change nothing here

    @classmethod
    def option_named(cls, name: str) -> str | None:
        """The option that a user means by a name, as a plan names it; None for an unknown one."""
        known = {folded(each): each for each in cls.model_fields if each not in cls.prefixes.values()}
        known |= {folded(each): field for each, field in cls.aliases.items()}
        if found := known.get(folded(name)):
            return found
        for prefix, field in cls.prefixes.items():
            if name.lower().startswith(prefix) and len(name) > len(prefix):
                return f"{field}.{name[len(prefix) :]}"
        return None

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, values: object) -> object:
        """The options with those of each prefix together in the field that takes them."""
        if not isinstance(values, Mapping):
            return values
        found: dict[str, Any] = {}
        for name, value in values.items():
            field, _, rest = name.partition(".")
            if rest and field in cls.prefixes.values():
                found.setdefault(field, {})[rest] = value
            else:
                found[name] = value
        return found

    def known_metadata(self) -> tuple[str, ...]:
        """What it knows of each row with these options, for columns METADATA FROM."""
        return self.metadata

    def with_metadata(self, fields: Sequence[str]) -> Self:  # noqa: ARG002 - of subclasses
        """The options of a table with columns METADATA FROM these fields."""
        return self

    def doubt(self, fields: Sequence[str]) -> str:  # noqa: ARG002 - of subclasses
        """What who reads such a table may overlook, for a warning; empty for nothing."""
        return ""

    def replaces_rows(self) -> bool:
        """Whether its sink replaces rows by the PRIMARY KEY of the table."""
        return self.upserts

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise OptionError if the options do not match the declared `columns` (empty: none declared)."""

    def check_primary_key(self, primary_key: Sequence[str]) -> None:
        """Raise OptionError if the options do not match these columns of the PRIMARY KEY."""

    @classmethod
    def check_position(cls, position: str) -> None:  # noqa: ARG003 - of subclasses
        """Raise OptionError if its source cannot begin a stream at this position, which a user gives."""
        raise OptionError("its connector cannot begin at a position; use --fresh to read all its data")

    def refusal_of_reads(self) -> str:
        """Why no query can read a table with these options; empty if one can."""
        return ""

    def refusal_of_writes(self, *, has_primary_key: bool) -> str:  # noqa: ARG002 - of subclasses
        """Likewise, why no INSERT can write it."""
        return ""

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
    known = [*model.model_fields, *model.aliases]
    ignored = {folded(name) for name in model.without_effect}
    errors: list[OptionError] = []
    meant = set[str | None]()  # the fields nearest to unknown names: they are not reported as missing, too
    values: dict[str, str] = {}
    written: dict[str, str] = {}  # field -> as the user wrote it
    for name, value in options.items():
        if folded(name) in ignored:
            continue
        field = model.option_named(name)
        if field is None:
            hint = did_you_mean(name, known) or f"; it takes {', '.join(model.model_fields) or 'none'}"
            message = f"unknown option '{name}' of connector '{connector}'{hint}"
            errors.append(OptionError(message, option=name))
            near = nearest(name, known)
            meant.add(model.aliases.get(near, near) if near else None)
        elif field in values and values[field] == value and folded(name) != folded(written[field]):
            continue  # a script for engines of two generations names it twice
        elif field in values:
            other = f", also as '{written[field]}'" if folded(written[field]) != folded(name) else ""
            errors.append(OptionError(f"option '{field}' is given twice{other}", option=name))
        else:
            values[field] = value
            written[field] = name
    checked = None
    try:
        checked = model.model_validate(values)
        checked.check_columns(columns)
    except ValidationError as error:
        errors += [
            _option_error(connector, details, written, model.unquoted)
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
    found = options.model_dump(mode="json", exclude=at_default)
    for field in dict.fromkeys(options.prefixes.values()):
        found |= {f"{field}.{name}": value for name, value in found.pop(field).items()}
    return found


def _option_error(
    connector: str, details: ErrorDetails, written: Mapping[str, str], unquoted: frozenset[str]
) -> OptionError:
    field = str(details["loc"][0])
    if details["type"] == "missing":
        return OptionError(f"connector '{connector}' needs option '{field}'")
    reason = without_prefix(details["msg"])
    if isinstance(details["input"], Mapping):  # its values may be secrets
        return OptionError(f"options of connector '{connector}' are wrong: {reason}")
    if field in unquoted:
        message = f"option '{field}' of connector '{connector}' cannot have this value: {reason}"
        return OptionError(message, option=written.get(field, ""), fault="value")
    given = str(details["input"])
    message = f"option '{field}' of connector '{connector}' cannot be '{given}': {reason}"
    return OptionError(message, option=written.get(field, ""), fault="value", quoted=given)


def folded(name: str) -> str:
    """The name of an option as it is compared: without case, `_` and `-`."""
    return name.lower().replace("_", "").replace("-", "")
