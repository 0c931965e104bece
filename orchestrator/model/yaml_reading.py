"""Reads YAML strictly: with the plain words of version 1.2, and bounds on aliases."""

import re
from collections.abc import Hashable
from typing import Any

import yaml

from spark_runner.protocol.text import shortened

MAX_DEPTH = 50
MAX_WEIGHT = 20_000
"""The limit of a document: one per node and one per fifty characters, aliases counted at each use."""

_CHARACTERS = 50
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


class _Refused(yaml.MarkedYAMLError):
    """Valid YAML that no definition may use."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(None, None, problem, mark)


class _Loader(yaml.SafeLoader):
    """YAML with the plain words of version 1.2.

    `on`, `NO`, `12:30` and `010` are text, and a number is one only if it prints back the same. The default
    rules of 1.1 would make `retry: {on: [lost]}` a key True, and 010 an 8.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._weight = 0
        self._weights: dict[int, int] = {}  # of nodes, by identity

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """The next node; raises _Refused above a limit: nested aliases take space only once expanded."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _Refused(f"nested deeper than the limit of {MAX_DEPTH}", event.start_mark)
        before = self._weight
        node = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._weights:
                raise _Refused(
                    f"the alias {event.anchor!r} is part of the value that it repeats", event.start_mark
                )
            self._weight += self._weights[id(node)]
        elif node is not None:
            self._weight += 1 + (len(node.value) // _CHARACTERS if isinstance(node.value, str) else 0)
            self._weights[id(node)] = self._weight - before
            self._check(node)
        if self._weight > MAX_WEIGHT:
            problem = f"too many values, with those that aliases repeat; the limit is {MAX_WEIGHT:,}"
            raise _Refused(problem, event.start_mark)
        self._depth -= 1
        return node

    def _check(self, node: yaml.Node) -> None:
        for key in (key for key, _ in node.value) if isinstance(node, yaml.MappingNode) else ():
            if not isinstance(key, yaml.ScalarNode):
                raise _Refused("the name of a field must be text, not a list or mapping", key.start_mark)
        implicit = (True, False) if isinstance(node, yaml.ScalarNode) else True
        plain = self.resolve(type(node), node.value, implicit)  # type: ignore[no-untyped-call]
        if node.tag not in {plain, _TEXT if isinstance(node, yaml.ScalarNode) else plain}:
            raise _Refused(f"the tag {node.tag[:100]!r} does not fit: remove it", node.start_mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping; raises _Refused for a key that is given twice."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != _MERGE:
                raise _Refused(f"field {shortened(key.value, 100)!r} is given twice", key.start_mark)
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
    """The value of YAML text; raises ValueError with position and reason for text that is not YAML."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - derived from SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = source if mark is None else f"{source}:{mark.line + 1}:{mark.column + 1}"
        problem = getattr(error, "problem", None) or error
        raise ValueError(f"{place}: not valid YAML or JSON: {problem}") from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{source}: not valid YAML or JSON: {error}") from error
