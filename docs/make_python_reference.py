"""Makes docs/python-reference.md from the public names of the packages: signatures and docstrings."""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

from pydantic import BaseModel

import orchestrator
import queues
from docs.generated import Part, code, prose, table
from queues import Layout

_MODULE = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Za-z_])")
_DEFAULT = re.compile(r"<function .*? at 0x[0-9a-f]+>|<[^<>]*>")
_DOTS = re.compile(r"\((?:\.\.\., )+\.\.\.\)")
_QUOTED = re.compile(r"'([A-Z]\w*)'")  # a type that is named before it exists
_WIDTH = 96  # of a signature on one line
_OWN = {"self", "cls"}


def made() -> str:
    """Each public class of both packages with its methods, then their functions, errors and constants."""
    return "\n\n".join(part for module in (orchestrator, queues) for part in _package(module))


def _package(module: ModuleType) -> Iterator[str]:
    yield f"## `{module.__name__}`"
    found = {name: getattr(module, name) for name in sorted(module.__all__)}
    errors = {
        name: each for name, each in found.items() if inspect.isclass(each) and issubclass(each, Exception)
    }
    classes = {name: each for name, each in found.items() if inspect.isclass(each) and name not in errors}
    functions = {name: each for name, each in found.items() if inspect.isfunction(each)}
    for name, each in classes.items():
        yield from _class(name, each)
    if functions:
        yield "### Functions"
        for name, each in functions.items():
            yield f"{_signature(name, each)}\n\n{prose(each.__doc__)}"
    if errors:
        rows = ((code(name), prose(_first(each))) for name, each in errors.items())
        yield "### Errors of " + module.__name__ + "\n\n" + table(("error", "meaning"), rows).strip()
    if rest := sorted(found.keys() - classes.keys() - functions.keys() - errors.keys()):
        yield "### Constants and types\n\n" + ", ".join(map(code, rest))


def _class(name: str, each: type) -> Iterator[str]:
    yield f"### {name}\n\n{_signature(name, each)}" + f"\n\n{prose(each.__doc__)}"
    if issubclass(each, Enum):
        yield ", ".join(code(member.name) for member in each)
        return
    members = [(member, found) for member, found in _members(each) if _first(_function(found))]
    properties = [(code(member), prose(_first(found))) for member, found in members if not _is_call(found)]
    if properties:
        yield table(("attribute", "meaning"), properties).strip()
    for member, found in members:
        if _is_call(found):
            yield f"{_signature(f'{name}.{member}', _function(found))}\n\n{prose(_function(found).__doc__)}"


def _members(each: type) -> Iterator[tuple[str, Any]]:
    """The public members of a class; those of a client are attributes of each instance, made of its parts."""
    found = dict(vars(each))
    if each is orchestrator.Client:
        made = vars(each(MagicMock(layout=Layout("/orchestrator"))))
        found |= {name: part for name, part in made.items() if not isinstance(part, MagicMock)}
    for name, member in found.items():
        if not name.startswith("_"):
            yield name, member


def _is_call(found: Any) -> bool:
    return inspect.isroutine(_function(found))


def _function(found: Any) -> Any:
    return getattr(found, "__func__", found)  # of methods, class methods and static methods


def _first(found: Any) -> str:
    return (inspect.getdoc(found) or "").partition("\n\n")[0]


def _signature(name: str, found: Any) -> str:
    """A call with its types, on one line or with one line for each parameter."""
    if inspect.isclass(found) and issubclass(found, BaseModel | Enum):
        return f"```python\n{name}(...)\n```" if issubclass(found, BaseModel) else f"```python\n{name}\n```"
    signature = inspect.signature(found)
    parameters = [each for each in signature.parameters.values() if each.name not in _OWN]
    signature = signature.replace(parameters=parameters)
    words = _words(signature).replace(" -> None", "")
    if len(name + words) > _WIDTH:
        inner = "".join(f"    {each},\n" for each in _each_parameter(parameters))
        words = f"(\n{inner}){words.rpartition(')')[2]}"
    return f"```python\n{name}{words}\n```"


def _each_parameter(parameters: list[inspect.Parameter]) -> Iterator[str]:
    is_named = False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not is_named:
            is_named = True
            yield "*"
        yield _words(each)


def _words(found: inspect.Parameter | inspect.Signature) -> str:
    """As text, without the modules of types; defaults that have no source are dots."""
    words = _DOTS.sub("...", _DEFAULT.sub("...", str(found)))
    return _QUOTED.sub(r"\1", _MODULE.sub("", words))


PART = Part(__file__, "python-reference.md", "the public names of both packages", made)

if __name__ == "__main__":
    PART.write()
