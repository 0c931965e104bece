"""Reading JSON and YAML as people mean them: no value changes its text on the way."""

import json
from collections import Counter
from typing import Any

from spark_runner.shortened import shortened


def read_document(text: str, source: str) -> Any:
    """What JSON or YAML text says; raises ValueError with place and reason for text that is neither."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError:
        pass  # then it is YAML, or nothing
    except RecursionError:
        raise ValueError(f"{source}: nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error
    from orchestrator.models.yaml_reading import read_yaml  # noqa: PLC0415 - slow to load

    return read_yaml(text, source)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"field {shortened(twice, 100)!r} stands twice")
    return document


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number that JSON has")
