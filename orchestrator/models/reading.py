"""Reading JSON and YAML as people mean them: no value changes its text on the way."""

import json
from typing import Any


def read_document(text: str, source: str) -> Any:
    """What JSON or YAML text says; raises ValueError with place and reason for text that is neither."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError:
        pass  # then it is YAML, or nothing
    except RecursionError:
        raise ValueError(f"{source}: nested too deeply") from None
    from orchestrator.models.yaml_reading import read_yaml  # noqa: PLC0415 - slow to load

    return read_yaml(text, source)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field {twice!r} stands twice")
    return document
