"""Field types that definitions and settings share, and errors that name the nearest field."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from orchestrator.model.errors import DefinitionError
from spark_runner.protocol.plain_file import check_plain
from spark_runner.protocol.text import nearest, shortened, without_prefix

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(ms|s|m|h|d)")
MAX_DAYS = 36_525
"""The longest duration: a hundred years, so that each due time is a valid date."""

_FILES = ("key_file", "ca_file", "token_file", "certificate_file")
_MAX_ERRORS = 20
_MAX_CHARACTERS = 300  # of a user's text in a message


def parse_seconds(value: str) -> float:
    """The seconds of a duration such as `30s`; raises ValueError, which shows how to write one."""
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        message = (
            f"{shortened(value, _MAX_CHARACTERS)!r} is not a duration;"
            " write a number with ms, s, m, h or d, for example 30s"
        )
        raise ValueError(message)
    return _bounded(float(match[1]) * _UNITS[match[2]])


def _bounded(seconds: float) -> float:
    if not abs(seconds) <= MAX_DAYS * _UNITS["d"]:  # NaN fails every comparison
        message = f"{seconds:g} s is not a duration; the longest is {MAX_DAYS}d"
        raise ValueError(message)
    return seconds


def _seconds(value: object) -> object:
    return parse_seconds(value) if isinstance(value, str) else value


Seconds = Annotated[float, BeforeValidator(_seconds), AfterValidator(_bounded)]
"""A duration: seconds as a number, or text such as `30s`, `10m`, `1d`."""


def is_duration(field: FieldInfo) -> bool:
    """Whether a field of a model is a duration."""
    return any(isinstance(item, BeforeValidator) and item.func is _seconds for item in field.metadata)


def format_seconds(seconds: float) -> str:
    """A duration as `parse_seconds` reads it, in the largest unit of which it is a whole number."""
    milliseconds = round(seconds * 1000)
    if milliseconds == 0:
        return "0s"
    whole = [
        (milliseconds // size, unit)
        for unit, size in ((unit, round(size * 1000)) for unit, size in _UNITS.items())
        if milliseconds % size == 0
    ]
    count, unit = whole[-1]
    return f"{count}{unit}"


def check_files(part: BaseModel) -> None:
    """Raise ValueError where a file that a part of the settings names exists and is no regular file."""
    for name in _FILES:
        if (path := getattr(part, name, None)) is not None:
            with suppress(OSError):  # it may be created later: its reader reports a file that is missing
                check_plain(path.expanduser())


def explain(error: ValidationError, model: type[BaseModel] | None, source: str) -> str:
    """One line per error; for an unknown field with the nearest name. `model` None ignores unknown fields."""
    lines = [f"{source}: {line}" for line in islice(_lines(error, model), _MAX_ERRORS)]
    if (more := error.error_count() - len(lines)) > 0:
        lines.append(f"{source}: {more:,} more errors")
    return "\n".join(lines)


def _lines(error: ValidationError, model: type[BaseModel] | None) -> Iterator[str]:
    for item in error.errors(include_url=False):
        name = shortened(".".join(str(part) for part in item["loc"]), _MAX_CHARACTERS)
        if item["type"] == "extra_forbidden" and model is not None:
            unknown = str(item["loc"][-1])
            known = _fields_at(model, item["loc"][:-1])
            near = nearest(unknown, known)
            hint = f"did you mean {near!r}?" if near else f"known here: {', '.join(sorted(known))}"
            yield f"unknown field {name!r}; {hint}"
        elif item["type"] == "missing":
            yield f"field {name!r} is missing"
        else:
            words = shortened(without_prefix(item["msg"]), 2 * _MAX_CHARACTERS)
            hint = _nearest_literal(item) if item["type"] == "literal_error" else ""
            yield (f"field {name!r}: " if name else "") + words + hint


def _nearest_literal(item: ErrorDetails) -> str:
    known = re.findall("'([^']*)'", str(item.get("ctx", {}).get("expected", "")))
    given = shortened(str(item["input"]), _MAX_CHARACTERS)
    near = nearest(given, known)
    return f", not {given!r}" + (f"; did you mean {near!r}?" if near else "")


def _fields_at(model: type[BaseModel], path: tuple[Any, ...]) -> list[str]:
    for part in path:
        if part not in model.model_fields:
            return []
        models = _models_in(model.model_fields[part].annotation)
        if not models:
            return []
        model = models[0]
    return list(model.model_fields)


def field_at(model: type[BaseModel], path: Sequence[str]) -> FieldInfo | None:
    """The field at a path of names, also of a table by pool; None where the model describes none."""
    name, *below = path
    field = model.model_fields.get(name)
    if field is None or not below:
        return field
    if get_origin(field.annotation) is dict:
        below = below[1:]  # behind the name of the pool
    models = _models_in(field.annotation)
    return field_at(models[0], below) if models and below else None


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    candidates = (annotation, *get_args(annotation))
    return [each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)]


class DefinitionPart(BaseModel):
    """An immutable part that accepts no unknown field."""

    # The validator of the whole definition checks its parts, so none builds its own validator. Their
    # defaults are constructed without one, too.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True)

    def __init__(self, /, **fields: Any) -> None:
        """Raise DefinitionError, with one line per error, where a field is refused."""
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise DefinitionError(explain(error, type(self), type(self).__name__)) from None

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __setattr__(self, name: str, value: object) -> None:
            """Raise DefinitionError: no part of a definition changes."""
            kind = type(self).__name__
            raise DefinitionError(
                f"{kind}: {name!r} cannot be changed; make a new {kind} with the other value"
            )

    # The parts of a definition that is validated as a whole are constructed without it, as with BaseModel's
    # own: so the errors of all parts are reported together.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # the mark of pydantic itself


def texts(value: object) -> object:
    """A mapping with its values as text; numbers and booleans become the text that Spark expects."""
    return {str(key): text(item) for key, item in value.items()} if isinstance(value, dict) else value


def text(item: object) -> str:
    """One value as text; raises ValueError unless it is text, a number or a boolean."""
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, str | int | float):
        return str(item)
    message = (
        f"text, a number, true or false is needed, not {'nothing' if item is None else type(item).__name__}"
    )
    raise ValueError(message)


# ASCII only: in Unicode the Kelvin sign is a k.
_WRITTEN = re.compile(r"[1-9][0-9]{0,14}[kmgt]b?", re.IGNORECASE | re.ASCII)


def checked_memory(value: str) -> str:
    """The value itself; raises ValueError unless it is empty or an amount with a unit."""
    if value and not _WRITTEN.fullmatch(value):
        message = f"{shortened(value, 100)!r} is not an amount of memory; write for example 512m or 1g"
        raise ValueError(message)
    return value
