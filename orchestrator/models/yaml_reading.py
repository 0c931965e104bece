"""Reading YAML as people mean it."""

import re
from collections.abc import Hashable
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """YAML with the plain words of version 1.2.

    `on`, `NO`, `12:30` and `010` are text, and a number is one only if it prints back the same. The default
    rules of 1.1 would make `retry: {on: [lost]}` a key True, and 010 an 8.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping; raises ConstructorError for a key that stands twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, f"field {key.value!r} stands twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", r"null|Null|NULL|~|", ["n", "N", "~", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"0|-?[1-9][0-9]*", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]{0,12})\.(?:0|[0-9]{0,3}[1-9])", list("-0123456789")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), _first)


def read_yaml(text: str, source: str) -> Any:
    """What YAML text says; raises ValueError with place and reason for text that is none."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - derived from SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = source if mark is None else f"{source}:{mark.line + 1}:{mark.column + 1}"
        problem = getattr(error, "problem", None) or error
        raise ValueError(f"{place}: not valid YAML or JSON: {problem}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{source}: not valid YAML or JSON: {error}") from error
