"""What tells whether a checkpoint counts the rows of a query, or those of another one."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from spark_runner.sql.text.built_ins import BUILT_INS, NUMBERS, with_values
from spark_runner.sql.text.literals import quote_name
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource

_PLACES = frozenset(
    {"line", "column", "read", "written", "reads", "declared", "path_at"}
)  # they compute nothing
_TEXTS = frozenset({"query", "statement", "columns", "expression", "type", "condition"})
_PACE = frozenset({"max_files_per_trigger"})
_SAME = {name: "1" if name in NUMBERS else name for name in BUILT_INS}


def fingerprint(plan: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]) -> str:
    """A hash of what these steps of the plan compute: not of their places in the script, spaces and pace.

    Each run has other values of built-in variables, and computes the same; not so where rows are read as a
    stream or written.
    """
    as_written = plan.get("as_written") or plan
    values = with_values(as_written["values"], _SAME)
    numbers = {id(step): number for number, step in enumerate(plan["steps"])}
    source, meant = ScriptSource(plan["file"], plan["source"]), list(steps)

    def texts(pieces: Iterable[Sequence[int]]) -> list[str]:
        return [token.text for token in Passage.from_json(source, pieces, values).tokens]

    def meaning(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: meaning(each, name) for name, each in value.items() if name not in _PLACES | _PACE}
        if key in _TEXTS and isinstance(value, list):
            return [names.get(text, text) for text in texts(value)]
        return [meaning(each) for each in value] if isinstance(value, list) else value

    def lasting(step: Mapping[str, Any]) -> dict[str, Any]:
        if step["kind"] == "table" and (step.get("stream") or step["written"]):
            return dict(step)
        return dict(with_values(as_written["steps"][numbers[id(step)]], _SAME))

    names = _names_of_uses(meant, texts)
    computed = list[Any]()
    for step in meant:
        own = quote_name(step["name"]) if "declared" in step else ""
        if own in names:
            computed.append(meaning({**lasting(step), "name": names[own]}))
        elif not own or step is meant[-1]:
            computed.append(meaning(lasting(step)))
    document = json.dumps(computed, sort_keys=True, default=str)
    return hashlib.sha256(document.encode()).hexdigest()


def _names_of_uses(
    steps: Sequence[Mapping[str, Any]], texts: Callable[[Iterable[Sequence[int]]], list[str]]
) -> dict[str, str]:
    """Names for the tables that have options of one use, by their own ones, which depend on other INSERTs."""
    uses = {quote_name(step["name"]): step["declared"] for step in steps if "declared" in step}
    names = dict[str, str]()
    for step in steps if uses else ():
        for text in texts(step["query"]) if "query" in step else ():
            if text in uses and text not in names:
                names[text] = f"{uses[text]} (use {len(names) + 1})"
    return names
