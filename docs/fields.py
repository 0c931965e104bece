"""Tables of the fields of a pydantic model and of the models in it: name, type, default, meaning."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docs.generated import code, prose, table
from orchestrator.model.fields import format_seconds, is_duration

Model = type[BaseModel]
_WORDS = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path", Any: "any"}
_BOUNDS = ((Ge, "ge", "at least"), (Gt, "gt", "more than"), (Le, "le", "at most"), (Lt, "lt", "less than"))


def sections(model: Model, note: Callable[[str], str] = lambda _: "") -> str:
    """The table of a model, then one section for each model in its fields.

    `note` gives further words about a field of the first table.
    """
    places: dict[Model, str] = {}
    for path, each in _models(model, ""):
        places.setdefault(each, path)
    made = [
        f"### `{path}`\n\n{prose(each.__doc__)}\n\n{_table(each, places)}"
        for each, path in places.items()
        if path
    ]
    return "\n".join((_table(model, places, note), *made))


def meaning(field: FieldInfo) -> str:
    """The description of a field, else that of the model in it."""
    documented = (each.__doc__ or "" for each in _models_of(field.annotation))
    return field.description or next((text.splitlines()[0] for text in documented), "")


def all_models(model: Model) -> list[Model]:
    """A model and those in its fields."""
    return list(dict.fromkeys(each for _, each in _models(model, "")))


def _models(model: Model, path: str) -> Iterator[tuple[str, Model]]:
    yield path, model
    for name, field in model.model_fields.items():
        by_name = ".NAME" if get_origin(field.annotation) is dict else ""
        for each in _models_of(field.annotation):
            yield from _models(each, f"{path}.{name}{by_name}".removeprefix("."))


def _models_of(annotation: Any) -> Iterator[Model]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_of(argument)


def _table(model: Model, places: Mapping[Model, str], note: Callable[[str], str] = lambda _: "") -> str:
    rows = (
        (
            code(field.alias or name),
            _type(field, places),
            _default(field),
            "; ".join(filter(None, (prose(meaning(field)), note(name)))),
        )
        for name, field in model.model_fields.items()
    )
    return table(("field", "type", "default", "meaning"), rows)


def _type(field: FieldInfo, places: Mapping[Model, str]) -> str:
    annotation = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    words = _words(annotation)
    for model in _models_of(field.annotation):
        anchor = places[model].lower().replace(".", "")
        return words.replace("table", f"[table](#{anchor})", 1)
    return words


def _words(annotation: Any) -> str:  # noqa: PLR0911 - one return for each kind of type
    """A type in words, with its bounds."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        duration = is_duration(FieldInfo.from_annotation(annotation))
        words = "duration" if duration else _words(arguments[0])
        return ", ".join(
            filter(None, (words, _bounds(arguments[1:], format_seconds if duration else _number)))
        )
    if origin in {Union, UnionType}:
        return " or ".join(_words(each) for each in arguments if each is not NoneType)
    if origin is Literal:
        return ", ".join(code(each) or "empty" for each in arguments)
    if origin is tuple:
        words = _words(arguments[0])
        return f"list of {words}{'s' * (words == 'text')}"
    if origin is dict:
        return "table by name"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    choices = getattr(annotation, "__members__", {})  # of an enum
    return ", ".join(code(choice.value) for choice in choices.values()) or _WORDS[annotation]


def _bounds(metadata: Iterable[Any], shown: Callable[[float], str]) -> str:
    flat = [part for each in metadata for part in (each.metadata if isinstance(each, FieldInfo) else (each,))]
    found = {
        words: shown(getattr(each, name))
        for each in flat
        for kind, name, words in _BOUNDS
        if isinstance(each, kind)
    }
    if found.keys() >= {"at least", "at most"}:
        return f"{found['at least']} to {found['at most']}"
    return ", ".join(" ".join(pair) for pair in found.items())


def _number(value: float) -> str:
    return f"{value:,}"


def _default(field: FieldInfo) -> str:  # noqa: PLR0911 - one return for each kind of value
    """The default as a user writes it; empty for none, and for what depends on the host."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel) or value in ("", (), {}, None):
        return ""
    if isinstance(value, Path):
        return code(str(value).replace(str(Path.home()), "~"))
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, tuple):
        return code(f"[{', '.join(map(str, value))}]")
    if is_duration(field):
        return code(format_seconds(value))
    if isinstance(value, int | float):
        return "" if field.default_factory else code(f"{value:.12g}")
    return code(value)
