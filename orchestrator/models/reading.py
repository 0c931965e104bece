"""Reads JSON and YAML strictly: a value keeps the text that the user wrote."""

import json
from collections import Counter
from typing import Any

from spark_runner.shortened import shortened


def read_document(text: str, source: str) -> Any:
    """The value of JSON or YAML text; raises ValueError with position and reason for text that is neither."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError:
        pass  # then it must be YAML
    except RecursionError:
        raise ValueError(f"{source}: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    from orchestrator.models.yaml_reading import read_yaml  # noqa: PLC0415 - lazy: slow to load

    return read_yaml(text, source)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"field {shortened(twice, 100)!r} is given twice")
    return document


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")
